// One entry of a layer as the archive claims it. Nothing in it has been checked.
#pragma once
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace osb::image {

enum class EntryKind { file, directory, symlink, hard_link, fifo, device, other };

struct Entry {
  EntryKind kind = EntryKind::other;
  std::string path;
  std::string target;      // of a symbolic or hard link
  std::uint32_t mode = 0;  // permission bits only
  std::int64_t uid = 0;
  std::int64_t gid = 0;
  std::int64_t size = 0;
  struct timespec mtime = {};
};

struct DataBlock {
  std::span<const std::byte> bytes;
  std::uint64_t offset = 0;  // what lies between two blocks is a hole
};

// The content of the entry at hand. nullopt at its end.
class EntryData {
 public:
  virtual ~EntryData() = default;
  virtual Result<std::optional<DataBlock>> next_block() = 0;
};

}  // namespace osb::image
