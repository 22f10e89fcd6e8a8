// How execd finds what it starts with: descriptors and set-up of a native sandbox, or the environment of a container.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "execd/daemon.h"
#include "execd/small_file.h"
#include "sys/descriptor_message.h"

extern char** environ;

namespace osb::execd {
namespace {

constexpr std::size_t kMaxSetup = 1024 * 1024;

// A descriptor launch left open; programs never inherit it.
Fd adopt(int number) {
  bool open = ::fcntl(number, F_SETFD, FD_CLOEXEC) == 0;
  return Fd(open ? number : -1);
}

Env inherited_environment() {
  Env env;
  for (char** entry = environ; entry && *entry; ++entry) {
    std::string_view text = *entry;
    auto equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    env.insert_or_assign(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
  }
  return env;
}

std::string working_directory() {
  char path[PATH_MAX];
  const char* found = ::getcwd(path, sizeof path);
  return found && *found == '/' ? found : "/";
}

bool is_socket(const Fd& fd) {
  struct stat what{};
  return ::fstat(fd.get(), &what) == 0 && S_ISSOCK(what.st_mode);
}

Result<std::string> read_setup(const Fd& text) {
  if (::lseek(text.get(), 0, SEEK_SET) != 0) return Error::from_errno("set-up", errno);
  return read_all_of(text.get(), kMaxSetup);
}

}  // namespace

Result<std::string> next_setup(const Fd& door) {
  Fd text;
  char mark = 0;
  if (sys::receive_with_descriptor(door.get(), &mark, 1, 0, text) != 1 || !text) return Error(Errc::unavailable, "never claimed");
  return read_setup(text);
}

Result<Start> adopt_native() {
  Start start;
  start.listener = adopt(3);
  Fd text = adopt(4);
  start.report = adopt(5);
  start.oom_counter = adopt(6);
  if (!start.listener || !text) return Error(Errc::invalid_argument, "descriptors 3 and 4 are not there; is this a native sandbox?");
  bool spare = is_socket(text);
  TRY(std::string json, spare ? next_setup(text) : read_setup(text));
  if (spare) start.door = std::move(text);
  TRY(start.setup, parse_setup(json));
  return start;
}

Start start_elsewhere(std::vector<std::string> entrypoint, std::string access_token) {
  Start start;
  start.setup.env = inherited_environment();
  start.setup.env.erase("EXECD_ACCESS_TOKEN");
  start.setup.entrypoint = std::move(entrypoint);
  start.setup.cwd = working_directory();
  start.setup.access_token = std::move(access_token);
  return start;
}

}  // namespace osb::execd
