// Signals of execd itself, as something to wait for: no handler ever runs.
#pragma once
#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include "async/task.h"
#include "base/result.h"

namespace osb::execd {

// Gives every signal its standard meaning and blocks SIGPIPE. Handed on by a division.
void reset_dispositions();

class Signals {
 public:
  struct Seen {
    bool child = false;      // something has ended
    bool terminate = false;  // SIGTERM or SIGINT
  };

  // Blocks what it watches.
  // `with_termination` only where somebody outside may end execd politely.
  static Result<Signals> make(Executor executor, bool with_termination);
  // Returns when there is something to take(). Where nobody may end execd from outside that is an end of a child.
  Task<void> ready();
  Seen take();

 private:
  Signals(Executor executor, int fd) : descriptor_(executor, fd) {}
  asio::posix::basic_stream_descriptor<Executor> descriptor_;
};

}  // namespace osb::execd
