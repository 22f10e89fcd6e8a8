// OutputPipe: execd's end of a program's stdout or stderr.
#pragma once
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "async/task.h"
#include "base/fd.h"

namespace osb::execd {

// Reads never block. When there is nothing, the pipe watches by itself and tells its owner once when that changes.
class OutputPipe {
 public:
  // `read_end` is non-blocking. `on_ready` runs on the I/O thread; what it captures lives until the pipe is closed.
  // `in_pieces`: a short read does not mean that there is no more (a terminal gives 4 KiB at a time).
  void open(Executor executor, Fd read_end, std::function<void()> on_ready, bool in_pieces = false);
  bool is_open() const { return descriptor_.has_value(); }
  // Bytes read; 0 when there is nothing now, or ever (then the pipe is closed).
  std::size_t read(std::span<char> into);
  std::size_t available() const;  // bytes in the pipe right now
  // Bytes are known to be there: the next read looks without waiting to be told.
  void expect_bytes() { ready_ = true; }
  void close();
  int handle() { return descriptor_ ? descriptor_->native_handle() : -1; }  // for ioctl(2); -1 when closed

 private:
  void watch();

  std::optional<asio::posix::basic_stream_descriptor<Executor>> descriptor_;
  std::shared_ptr<std::function<void()>> on_ready_;  // also held by a watch that has not fired
  bool ready_ = false;
  bool watching_ = false;
  bool in_pieces_ = false;
};

// 64 KiB that every reader shares: valid until the next co_await.
std::span<char> scratch();

}  // namespace osb::execd
