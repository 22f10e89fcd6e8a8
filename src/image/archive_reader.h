// The adapter to libarchive: tar entries of a plain stream, or the bytes of a compressed one.
//
// libarchive only parses here. It never opens, names or writes a file: layer_writer.h does that by its own rules.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "image/byte_source.h"
#include "image/entry.h"

namespace osb::image {

enum class Compression { none, gzip, bzip2, xz, zstd };
Compression detect_compression(Bytes head);

// Preconditions: the source below outlives the reader.
class TarReader : public EntryData {
 public:
  explicit TarReader(ByteSource& below);
  ~TarReader() override;
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;

  // nullopt at the end. The unread content of the entry before is passed over.
  Result<std::optional<Entry>> next_entry();
  Result<std::optional<DataBlock>> next_block() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Exactly one layer of compression; what is inside is not looked at. The budget stops bombs.
class DecompressedSource : public ByteSource {
 public:
  DecompressedSource(ByteSource& below, Compression compression, const Budget& budget);
  ~DecompressedSource() override;
  DecompressedSource(const DecompressedSource&) = delete;
  DecompressedSource& operator=(const DecompressedSource&) = delete;
  Result<Bytes> next() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace osb::image
