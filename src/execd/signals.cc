#include "execd/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace osb::execd {

// SIGPIPE is blocked, not ignored: programs inherit what is ignored, and what is blocked they get back with the rest.
void reset_dispositions() {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < 32; ++signal)
    if (signal != SIGKILL && signal != SIGSTOP) ::sigaction(signal, &standard, nullptr);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGPIPE);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

Result<Signals> Signals::make(Executor executor, bool with_termination) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  if (with_termination) {
    ::sigaddset(&set, SIGTERM);
    ::sigaddset(&set, SIGINT);
  }
  int fd = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  ::sigaddset(&set, SIGPIPE);
  if (::sigprocmask(SIG_SETMASK, &set, nullptr) != 0) return Error::from_errno("block signals", errno);
  if (fd < 0) return Error::from_errno("signalfd", errno);
  return Signals(executor, fd);
}

Task<void> Signals::ready() { co_await descriptor_.async_wait(asio::posix::descriptor_base::wait_read, nothrow); }

Signals::Seen Signals::take() {
  Seen seen;
  signalfd_siginfo infos[16];
  auto n = ::read(descriptor_.native_handle(), infos, sizeof infos);
  for (ssize_t i = 0; i < n / static_cast<ssize_t>(sizeof infos[0]); ++i) {
    bool child = infos[i].ssi_signo == SIGCHLD;
    seen.child = seen.child || child;
    seen.terminate = seen.terminate || !child;
  }
  return seen;
}

}  // namespace osb::execd
