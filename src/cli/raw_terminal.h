// RawTerminal: the terminal we were started from, handed to a program in a sandbox for a while.
//
// Whatever ends us while it is raw gives it back as it was: leaving the scope, exit(), and the signals of a crash; those
// that ask a program to end are data while a Signals lives. Only SIGKILL cannot be helped.
#pragma once
#include <termios.h>

#include <cstdint>

namespace osb::cli {

struct WindowSize {
  std::uint16_t cols = 80;
  std::uint16_t rows = 24;
};

WindowSize window_size(int fd);  // 80 by 24 where the terminal does not say

class RawTerminal {
 public:
  explicit RawTerminal(int fd);  // raw from here on; one at a time
  ~RawTerminal() { restore(); }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  WindowSize size() const { return window_size(fd_); }
  // As after Ctrl-Z in any program: the shell gets its terminal back until somebody says fg.
  void suspend();

 private:
  void enter();
  void restore();

  int fd_;
  termios before_{};
  bool known_ = false;
};

}  // namespace osb::cli
