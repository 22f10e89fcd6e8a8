// OutputPipe: execd's end of a program's stdout or stderr.
#pragma once
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <memory>
#include <optional>
#include <span>

#include "async/task.h"
#include "base/fd.h"

namespace osb::execd {

class OutputSource;

// Reads never block. Nobody is told of what comes until somebody waits for it (watch): a program that is over before that is
// read once, at its end, and has woken nobody with its words.
class OutputPipe {
 public:
  // `pipe.read` is non-blocking. `pipe.write`, if it is still there, is closed before anybody waits for the end of the pipe.
  // `in_pieces`: a short read does not mean that there is no more (a terminal gives 4 KiB at a time).
  void open(Pipe pipe, bool in_pieces = false);
  bool is_open() const { return fd_ || descriptor_; }
  // Bytes read; 0 when there is nothing now, or ever (then the pipe is closed).
  std::size_t read(std::span<char> into);
  // While it lingers a pipe that is at its end stays open, for close_at_end() when there is time.
  void linger(bool on) { lingers_ = on; }
  std::size_t available() const;  // bytes in the pipe right now
  // Bytes, or the end, are known to be there: the next read looks without waiting to be told.
  void expect_bytes() { ready_ = true; }
  // The last read took all there was, or all there will ever be.
  bool emptied() const { return !is_open() || !ready_; }
  // Closes the pipe if nobody can write to it any more. What it holds is dropped.
  void close_at_end();
  // Wakes `owner`, which this pipe is a part of, when there is something; at once if there is already.
  void watch(Executor executor, std::shared_ptr<OutputSource> owner);
  void close();
  int handle() const;  // for ioctl(2); -1 when closed

 private:
  Fd write_end_;
  Fd fd_;                                                                     // until the first watch
  std::optional<asio::posix::basic_stream_descriptor<Executor>> descriptor_;  // from then on
  bool ready_ = false;
  bool watching_ = false;
  bool in_pieces_ = false;
  bool lingers_ = false;
};

// 64 KiB that every reader shares: valid until the next co_await.
std::span<char> scratch();
void give_back_scratch();  // its memory, until somebody reads again

}  // namespace osb::execd
