// A descriptor that bytes go out to without ever stopping the loop that feeds it.
#pragma once
#include <string>
#include <string_view>

#include "base/fd.h"

namespace osb::cli {

// Never changes flags of the descriptor itself: they are shared with the shell that started us.
class Sink {
 public:
  explicit Sink(int fd);

  // Writes what fits and keeps the rest; the caller feeds no more while pending(). Bytes for a broken sink are dropped.
  void push(std::string_view bytes);
  void flush();  // when poll_fd() is writable
  bool pending() const { return at_ < rest_.size(); }
  int poll_fd() const { return pending() ? fd_ : -1; }
  int failed() const { return failed_; }  // errno of the write that broke it, EPIPE when the reader went away; 0 = fine

 private:
  std::size_t write_some(std::string_view bytes, bool is_ready);

  int fd_;
  Fd own_;            // a description of our own for a pipe, which may be non-blocking
  bool never_waits_;  // regular files, and pipes through own_
  int failed_ = 0;
  std::string rest_;
  std::size_t at_ = 0;
};

}  // namespace osb::cli
