#include "image/byte_source.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/text.h"
#include "sys/fs_file.h"
#include "sys/fs_open.h"

namespace osb::image {
namespace {

constexpr std::size_t kChunk = 256 * 1024;

}  // namespace

Result<std::unique_ptr<FileSource>> FileSource::over(int fd) {
  TRY(auto info, sys::fs::stat_fd(fd));
  if (!S_ISREG(info.st_mode)) return Error(Errc::invalid_argument, "not a regular file");
  return std::unique_ptr<FileSource>(new FileSource(fd, static_cast<std::uint64_t>(info.st_size)));
}

FileSource::FileSource(int fd, std::uint64_t size) : fd_(fd), size_(size), buffer_(kChunk) {}

Result<Bytes> FileSource::next() {
  TRY(auto n, sys::fs::read_some_at(fd_, buffer_, at_));
  at_ += n;
  return Bytes(buffer_).first(n);
}

std::uint64_t FileSource::skip(std::uint64_t bytes) {
  // Never past the end: a file that is shorter than its headers say must end early for the reader above, too.
  std::uint64_t step = at_ >= size_ ? 0 : std::min(bytes, size_ - at_);
  at_ += step;
  return step;
}

Result<Bytes> MemorySource::next() {
  Bytes chunk = rest_.first(std::min(rest_.size(), kChunk));
  rest_ = rest_.subspan(chunk.size());
  return chunk;
}

Result<Bytes> PeekedSource::peek() {
  while (!peeked_ && head_.size() < kPeek) {
    TRY(auto chunk, below_.next());
    if (chunk.empty()) break;
    head_.insert(head_.end(), chunk.begin(), chunk.end());
  }
  peeked_ = true;
  return Bytes(head_).first(std::min(head_.size(), kPeek));
}

Result<Bytes> PeekedSource::next() {
  if (replayed_ || head_.empty()) return below_.next();
  replayed_ = true;
  return Bytes(head_);
}

Result<Bytes> HashedSource::next() {
  TRY(auto chunk, below_.next());
  if (chunk.empty()) return chunk;
  if (charge_ != nullptr) CHECK_OK(charge_->charge_stream(chunk.size()));
  hash_.update(chunk);
  count_ += chunk.size();
  auto last = std::find_if(chunk.rbegin(), chunk.rend(), [](std::byte b) { return b != std::byte{0}; });
  auto zeros = static_cast<std::uint64_t>(last - chunk.rbegin());
  trailing_zeros_ = zeros == chunk.size() ? trailing_zeros_ + zeros : zeros;
  return chunk;
}

Result<> HashedSource::drain() {
  while (true) {
    TRY(auto chunk, next());
    if (chunk.empty()) return Ok{};
  }
}

Result<std::string> read_all(ByteSource& source, std::size_t max_bytes) {
  std::string text;
  while (true) {
    TRY(auto chunk, source.next());
    if (chunk.empty()) return text;
    if (chunk.size() > max_bytes - text.size()) return Error(Errc::too_large, cat("larger than ", max_bytes, " bytes"));
    text.append(reinterpret_cast<const char*>(chunk.data()), chunk.size());
  }
}

}  // namespace osb::image
