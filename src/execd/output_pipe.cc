#include "execd/output_pipe.h"

#include <errno.h>
#include <sys/ioctl.h>

namespace osb::execd {

void OutputPipe::open(Executor executor, Fd read_end, std::function<void()> on_ready, bool in_pieces) {
  in_pieces_ = in_pieces;
  on_ready_ = std::make_shared<std::function<void()>>(std::move(on_ready));
  descriptor_.emplace(executor, read_end.release());
  watch();
}

void OutputPipe::watch() {
  ready_ = false;
  if (watching_) return;
  watching_ = true;
  // The pipe lives in what on_ready holds on to, so `this` is there as long as the handler is.
  descriptor_->async_wait(asio::posix::descriptor_base::wait_read, [this, tell = on_ready_](boost::system::error_code ec) {
    watching_ = false;
    if (ec) return;
    ready_ = true;
    (*tell)();
  });
}

std::size_t OutputPipe::read(std::span<char> into) {
  // A read of nothing would look like the end.
  std::size_t got = 0;
  while (descriptor_ && ready_ && got < into.size()) {
    ssize_t n = ::read(descriptor_->native_handle(), into.data() + got, into.size() - got);
    if (n > 0) {
      got += static_cast<std::size_t>(n);
      if (in_pieces_) continue;
      if (got < into.size()) watch();
      break;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN)
      watch();
    else
      close();
  }
  return got;
}

std::size_t OutputPipe::available() const {
  int bytes = 0;
  if (!descriptor_ || ::ioctl(const_cast<OutputPipe*>(this)->descriptor_->native_handle(), FIONREAD, &bytes) != 0) return 0;
  return static_cast<std::size_t>(bytes);
}

void OutputPipe::close() {
  descriptor_.reset();
  on_ready_.reset();
}

std::span<char> scratch() {
  static char bytes[64 * 1024];
  return bytes;
}

}  // namespace osb::execd
