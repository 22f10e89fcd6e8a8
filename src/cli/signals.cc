#include "cli/signals.h"

#include <sys/signalfd.h>

namespace osb::cli {

Signals::Signals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    struct sigaction action{};
    // The kernel keeps even an ignored signal while it is blocked, so an ignored one is not blocked.
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&wanted, number);
  }
  ::sigprocmask(SIG_BLOCK, &wanted, &before_);
  fd_.reset(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  ::signal(SIGPIPE, SIG_IGN);
}

Signals::~Signals() {
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
}

std::optional<int> Signals::take() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace osb::cli
