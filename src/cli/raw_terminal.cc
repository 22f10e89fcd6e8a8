#include "cli/raw_terminal.h"

#include <signal.h>
#include <sys/ioctl.h>

#include <cstdlib>

namespace osb::cli {
namespace {

// What a handler of a crash needs, as plain data: the descriptor that is raw now, or -1, and how it was.
volatile sig_atomic_t raw_fd = -1;
termios how_it_was{};

void give_back() {
  int fd = raw_fd;
  raw_fd = -1;
  if (fd >= 0) ::tcsetattr(fd, TCSANOW, &how_it_was);
}

// SA_RESETHAND: the second time it ends us as it would have.
void on_crash(int number) {
  give_back();
  ::raise(number);
}

void guard_crashes() {
  static bool guarded = false;
  if (guarded) return;
  guarded = true;
  std::atexit(give_back);
  struct sigaction action{};
  action.sa_handler = on_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGXCPU}) ::sigaction(number, &action, nullptr);
}

}  // namespace

RawTerminal::RawTerminal(int fd) : fd_(fd) {
  guard_crashes();
  known_ = ::tcgetattr(fd, &before_) == 0;
  enter();
}

void RawTerminal::enter() {
  if (!known_) return;
  how_it_was = before_;
  raw_fd = fd_;
  termios raw = before_;
  ::cfmakeraw(&raw);
  ::tcsetattr(fd_, TCSANOW, &raw);
}

void RawTerminal::restore() {
  if (known_) give_back();
}

WindowSize window_size(int fd) {
  winsize window{};
  if (::ioctl(fd, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) return {};
  return {.cols = window.ws_col, .rows = window.ws_row};
}

void RawTerminal::suspend() {
  restore();
  ::raise(SIGSTOP);
  enter();
}

}  // namespace osb::cli
