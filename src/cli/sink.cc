#include "cli/sink.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/text.h"

namespace osb::cli {

Sink::Sink(int fd) : fd_(fd), never_waits_(false) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return;
  never_waits_ = S_ISREG(info.st_mode);
  if (!S_ISFIFO(info.st_mode)) return;
  own_.reset(::open(cat("/proc/self/fd/", fd).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!own_) return;
  fd_ = own_.get();
  never_waits_ = true;
}

// A blocking descriptor that poll calls writable takes at least PIPE_BUF bytes without waiting.
std::size_t Sink::write_some(std::string_view bytes, bool is_ready) {
  if (!never_waits_ && !is_ready) return 0;
  if (!never_waits_) bytes = bytes.substr(0, PIPE_BUF);
  std::size_t done = 0;
  while (done < bytes.size()) {
    auto n = ::write(fd_, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) {
      failed_ = errno;
      return bytes.size();
    }
    done += static_cast<std::size_t>(n);
    if (!never_waits_) break;
  }
  return done;
}

void Sink::push(std::string_view bytes) {
  if (failed_ != 0) return;
  if (!pending()) {
    rest_.clear();
    at_ = 0;
    bytes.remove_prefix(write_some(bytes, false));
  }
  if (failed_ == 0) rest_ += bytes;
}

void Sink::flush() {
  if (pending() && failed_ == 0) at_ += write_some(std::string_view(rest_).substr(at_), true);
  if (failed_ != 0) at_ = rest_.size();
}

}  // namespace osb::cli
