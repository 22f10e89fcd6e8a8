// What one import may cost: bytes, entries, time, and the room that must stay free on the disk.
#pragma once
#include <cstdint>
#include <functional>

#include "base/result.h"
#include "sys/fs_open.h"

namespace osb::image {

struct BudgetLimits {
  std::uint64_t max_bytes = 16ull << 30;      // of files, unpacked; holes of sparse files count
  std::uint64_t max_entries = 2'000'000;      // files, links and directories, also those made only as parents
  std::int64_t max_nanos = 1800'000'000'000;  // wall time of the whole import
  std::uint64_t max_ratio = 200;              // unpacked to packed bytes of a compressed stream...
  std::uint64_t ratio_after = 64ull << 20;    // ...once this much came out of it
};

// Errc::exhausted when writing on would eat into what the host needs: 5 % of the disk (64 MiB to 10 GiB) and of its inodes.
Result<> check_reserve(const sys::fs::Space& space);

// Charged before the thing is made, so a refusal costs nothing. One budget covers all layers of an import.
class Budget {
 public:
  using Progress = std::function<void(std::uint64_t bytes, std::uint64_t entries)>;

  // `store` is a descriptor on the disk that fills up; it outlives the budget. -1: the disk is not watched.
  Budget(BudgetLimits limits, int store, Progress progress = {});

  Result<> charge_entry();
  Result<> charge_bytes(std::uint64_t bytes);
  // Raw tar bytes: headers and padding have their own, wider bound, so that an endless stream of them ends too.
  Result<> charge_stream(std::uint64_t bytes);
  // A compressed stream gave `out` bytes for `in`. Errc::too_large when that is a bomb.
  Result<> check_ratio(std::uint64_t in, std::uint64_t out) const;
  Result<> check_clock() const;

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t entries() const { return entries_; }

 private:
  Result<> check_disk();
  void report();

  BudgetLimits limits_;
  int store_;
  Progress progress_;
  std::int64_t deadline_;
  std::uint64_t bytes_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t stream_ = 0;
  std::uint64_t disk_checked_at_ = 0;
  std::uint64_t reported_at_ = 0;
};

}  // namespace osb::image
