// Limits of one sandbox, in base units. Zero never means "unlimited": every limit is always set.
#pragma once
#include <cstdint>

namespace osb {

struct Limits {
  std::uint64_t memory_bytes = 512ull << 20;
  std::uint32_t cpu_millis = 1000;  // thousandths of one cpu
  std::uint32_t pids = 256;
  std::uint64_t disk_bytes = 256ull << 20;
  std::uint64_t disk_inodes = 64 * 1024;
  std::uint64_t io_bytes_per_second = 50'000'000;
  std::uint32_t io_operations_per_second = 1000;
  auto operator<=>(const Limits&) const = default;
};

}  // namespace osb
