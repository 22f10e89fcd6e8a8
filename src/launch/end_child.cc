#include "launch/end_child.h"

#include <poll.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

#include "sys/raw.h"

namespace osb::launch {
namespace {

constexpr int kPatienceMillis = 2000;

}  // namespace

bool end_child(int pidfd) {
  sys::raw::pidfd_send_signal(pidfd, SIGKILL);
  pollfd end{pidfd, POLLIN, 0};
  while (::poll(&end, 1, kPatienceMillis) < 0 && errno == EINTR) {
  }
  siginfo_t info{};
  return ::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0;
}

}  // namespace osb::launch
