// Signals as data: while a Signals lives, those a command may want are read from a descriptor instead of ending us.
#pragma once
#include <signal.h>

#include <optional>

#include "base/fd.h"

namespace osb::cli {

class Signals {
 public:
  // INT TERM HUP QUIT USR1 USR2; one that is ignored already (nohup) stays ignored. SIGPIPE becomes EPIPE.
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // From now on also those of a terminal: WINCH and TSTP.
  void watch_terminal();

  int fd() const { return fd_.get(); }
  std::optional<int> take();  // the next one that waits, if any

 private:
  Fd fd_;
  sigset_t wanted_{};
  sigset_t before_{};
};

}  // namespace osb::cli
