// Streams of bytes, pulled chunk by chunk; stages wrap one another: file -> hash -> decompress -> hash -> tar.
//
// A stage keeps a reference to the one below it, which must outlive it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "image/budget.h"
#include "image/sha256.h"

namespace osb::image {

using Bytes = std::span<const std::byte>;

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Valid until the next call. Empty means the end, and stays so.
  virtual Result<Bytes> next() = 0;
  // Passes over at most `bytes` without reading them; answers how many. 0 = cannot, read instead.
  virtual std::uint64_t skip(std::uint64_t /*bytes*/) { return 0; }
};

// A regular file from its start; keeps its own position, so several may read one descriptor.
class FileSource : public ByteSource {
 public:
  static Result<std::unique_ptr<FileSource>> over(int fd);  // the descriptor outlives it
  Result<Bytes> next() override;
  std::uint64_t skip(std::uint64_t bytes) override;

 private:
  FileSource(int fd, std::uint64_t size);
  int fd_;
  std::uint64_t size_;
  std::uint64_t at_ = 0;
  std::vector<std::byte> buffer_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(Bytes bytes) : rest_(bytes) {}
  Result<Bytes> next() override;

 private:
  Bytes rest_;
};

// Lets the first bytes be looked at before anyone reads them.
class PeekedSource : public ByteSource {
 public:
  static constexpr std::size_t kPeek = 512;
  explicit PeekedSource(ByteSource& below) : below_(below) {}
  Result<Bytes> peek();  // up to kPeek bytes; fewer only when there are no more
  Result<Bytes> next() override;

 private:
  ByteSource& below_;
  std::vector<std::byte> head_;
  bool peeked_ = false;
  bool replayed_ = false;
};

// Hashes and counts what passes; the digest is complete once next() has answered the end (see drain()).
class HashedSource : public ByteSource {
 public:
  explicit HashedSource(ByteSource& below, Budget* charge = nullptr) : below_(below), charge_(charge) {}
  Result<Bytes> next() override;
  Result<> drain();
  std::string hex() { return hash_.hex(); }
  std::uint64_t count() const { return count_; }
  // A whole tar ends in zeros; one that was cut at the end of an entry does not.
  bool ends_in_zeros() const { return trailing_zeros_ >= 512; }

 private:
  ByteSource& below_;
  Budget* charge_;
  Sha256 hash_;
  std::uint64_t count_ = 0;
  std::uint64_t trailing_zeros_ = 0;
};

// All of it, at most `max_bytes` (Errc::too_large past that).
Result<std::string> read_all(ByteSource& source, std::size_t max_bytes);

}  // namespace osb::image
