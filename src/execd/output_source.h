// OutputSource: two pipes somebody writes to, one consumer, and whether the writer that counts is still there.
#pragma once
#include <chrono>
#include <memory>

#include "async/task.h"
#include "execd/output_pipe.h"

namespace osb::execd {

// Held by shared_ptr: the pipes' watches keep it alive.
class OutputSource : public std::enable_shared_from_this<OutputSource> {
 public:
  using Clock = std::chrono::steady_clock;

  explicit OutputSource(Executor executor) : activity_(executor) {}
  OutputSource(const OutputSource&) = delete;
  OutputSource& operator=(const OutputSource&) = delete;
  virtual ~OutputSource() = default;

  // False: what is in the pipes now is the rest; what others add to them later does not count.
  virtual bool running() const = 0;

  // A closed pipe has been read to its end or was never made.
  OutputPipe& out() { return out_; }
  OutputPipe& err() { return err_; }
  // The writer has ended: what it wrote, and most likely the end, is there to be read.
  void expect_output() {
    out_.expect_bytes();
    err_.expect_bytes();
  }
  bool has_open_pipe() const { return out_.is_open() || err_.is_open(); }
  // Returns when a pipe that had nothing may have something, when the writer ends, or at `until`.
  Task<void> activity(Clock::time_point until) {
    activity_.expires_at(until);
    for (OutputPipe* pipe : {&out_, &err_}) pipe->watch(activity_.get_executor(), shared_from_this());
    co_await activity_.async_wait(nothrow);
  }
  void wake() { activity_.cancel(); }

 protected:
  Timer activity_;
  OutputPipe out_;
  OutputPipe err_;
};

}  // namespace osb::execd
