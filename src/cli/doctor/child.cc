#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"
#include "cli/doctor/probes.h"
#include "sys/kernel_file.h"

namespace osb::cli {

int errno_in_child(const std::function<int()>& probe) {
  pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) ::_exit(probe() & 0xFF);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

std::string first_line(const std::string& path) {
  auto text = sys::read_file(path, 64 * 1024);
  return text ? std::string(split(*text, '\n')[0]) : std::string();
}

}  // namespace osb::cli
