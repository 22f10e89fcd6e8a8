#include "execd/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace osb::execd {

// Programs inherit what is ignored; only SIGPIPE is, and each program gets it back.
void reset_dispositions() {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < 32; ++signal)
    if (signal != SIGKILL && signal != SIGSTOP) ::sigaction(signal, &standard, nullptr);
  standard.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &standard, nullptr);
}

Result<Signals> Signals::make(Executor executor, bool with_termination) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  if (with_termination) {
    ::sigaddset(&set, SIGTERM);
    ::sigaddset(&set, SIGINT);
  }
  if (::sigprocmask(SIG_SETMASK, &set, nullptr) != 0) return Error::from_errno("block signals", errno);
  int fd = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (fd < 0) return Error::from_errno("signalfd", errno);
  return Signals(executor, fd);
}

Task<Signals::Seen> Signals::wait() {
  Seen seen;
  while (!seen.child && !seen.terminate) {
    auto [ec] = co_await descriptor_.async_wait(asio::posix::descriptor_base::wait_read, nothrow);
    if (ec) co_return seen;
    signalfd_siginfo infos[16];
    auto n = ::read(descriptor_.native_handle(), infos, sizeof infos);
    for (ssize_t i = 0; i < n / static_cast<ssize_t>(sizeof infos[0]); ++i) {
      bool child = infos[i].ssi_signo == SIGCHLD;
      seen.child = seen.child || child;
      seen.terminate = seen.terminate || !child;
    }
  }
  co_return seen;
}

}  // namespace osb::execd
