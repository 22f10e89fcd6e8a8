#include "cli/signals.h"

#include <sys/signalfd.h>

namespace osb::cli {

Signals::Signals() {
  sigemptyset(&wanted_);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    struct sigaction action{};
    // The kernel keeps even an ignored signal while it is blocked, so an ignored one is not blocked.
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&wanted_, number);
  }
  ::sigprocmask(SIG_BLOCK, &wanted_, &before_);
  fd_.reset(::signalfd(-1, &wanted_, SFD_CLOEXEC | SFD_NONBLOCK));
  ::signal(SIGPIPE, SIG_IGN);
}

void Signals::watch_terminal() {
  sigaddset(&wanted_, SIGWINCH);
  sigaddset(&wanted_, SIGTSTP);
  ::sigprocmask(SIG_BLOCK, &wanted_, nullptr);
  ::signalfd(fd_.get(), &wanted_, 0);
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
