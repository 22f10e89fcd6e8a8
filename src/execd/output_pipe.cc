#include "execd/output_pipe.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "execd/output_source.h"

namespace osb::execd {

void OutputPipe::open(Pipe pipe, bool in_pieces) {
  in_pieces_ = in_pieces;
  write_end_ = std::move(pipe.write);
  fd_ = std::move(pipe.read);
}

int OutputPipe::handle() const { return descriptor_ ? const_cast<OutputPipe*>(this)->descriptor_->native_handle() : fd_.get(); }

void OutputPipe::watch(Executor executor, std::shared_ptr<OutputSource> owner) {
  if (!is_open() || ready_ || watching_) return;
  write_end_.reset();
  if (!descriptor_) descriptor_.emplace(executor, fd_.release());
  watching_ = true;
  // The pipe lives in its owner, so `this` is there as long as the handler is.
  descriptor_->async_wait(asio::posix::descriptor_base::wait_read, [this, owner = std::move(owner)](boost::system::error_code ec) {
    watching_ = false;
    if (ec) return;
    ready_ = true;
    owner->wake();
  });
}

std::size_t OutputPipe::read(std::span<char> into) {
  // A read of nothing would look like the end.
  std::size_t got = 0;
  while (is_open() && ready_ && got < into.size()) {
    ssize_t n = ::read(handle(), into.data() + got, into.size() - got);
    if (n > 0) {
      got += static_cast<std::size_t>(n);
      if (in_pieces_) continue;
      ready_ = got == into.size();
      break;
    }
    if (n < 0 && errno == EINTR) continue;
    ready_ = false;
    if ((n == 0 || errno != EAGAIN) && !lingers_) close();
  }
  return got;
}

std::size_t OutputPipe::available() const {
  int bytes = 0;
  if (!is_open() || ::ioctl(handle(), FIONREAD, &bytes) != 0) return 0;
  return static_cast<std::size_t>(bytes);
}

void OutputPipe::close_at_end() {
  write_end_.reset();
  char rest[4096];
  if (is_open() && ::read(handle(), rest, sizeof rest) == 0) close();
}

void OutputPipe::close() {
  write_end_.reset();
  descriptor_.reset();
  fd_.reset();
}

namespace {

constexpr std::size_t kPage = 4096;
alignas(kPage) char shared_bytes[16 * kPage];

}  // namespace

std::span<char> scratch() { return shared_bytes; }

void give_back_scratch() { ::madvise(shared_bytes, sizeof shared_bytes, MADV_DONTNEED); }

}  // namespace osb::execd
