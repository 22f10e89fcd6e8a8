#include "execd/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"

namespace osb::execd {

// Most files are smaller than the block: they cost the memory of their text, not of a buffer for any text.
Result<std::string> read_all_of(int fd, std::size_t limit) {
  std::string text;
  char block[2048];
  while (text.size() < limit) {
    ssize_t n = ::read(fd, block, std::min(sizeof block, limit - text.size()));
    if (n < 0 && errno != EINTR) return Error::from_errno("read", errno);
    if (n == 0) break;
    if (n > 0) text.append(block, static_cast<std::size_t>(n));
  }
  return text;
}

Result<std::string> read_small_file(const std::string& path, std::size_t limit) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return Error::from_errno("open", errno);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return Error::from_errno("stat", errno);
  if (!S_ISREG(info.st_mode)) return Error(Errc::invalid_argument, "not a regular file");
  // A file that says how long it is needs no further look at its end; kernel files say 0.
  auto size = static_cast<std::size_t>(info.st_size);
  return read_all_of(file.get(), size > 0 ? std::min(limit, size) : limit);
}

}  // namespace osb::execd
