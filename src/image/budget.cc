#include "image/budget.h"

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "sys/fs_open.h"

namespace osb::image {
namespace {

constexpr std::uint64_t kMiB = 1ull << 20;
constexpr std::uint64_t kDiskCheckEvery = 32 * kMiB;
constexpr std::uint64_t kEntryCost = 4096;  // what an entry counts for on disk and in a tar besides its content
constexpr std::uint64_t kReportEvery = 8 * kMiB;
constexpr std::uint64_t kMostBytes = 1ull << 50;
constexpr std::uint64_t kMostEntries = 1ull << 32;

Error over(std::string_view what, std::uint64_t limit) {
  return Error(Errc::too_large, cat("the archive has more than ", limit, ' ', what));
}

}  // namespace

Budget::Budget(BudgetLimits limits, int store, Progress progress)
    : limits_(limits), store_(store), progress_(std::move(progress)), deadline_(boot_now_nanos() + limits.max_nanos) {
  // Bounds that keep every sum below in 64 bits, whatever the caller asked for.
  limits_.max_bytes = std::min(limits_.max_bytes, kMostBytes);
  limits_.max_entries = std::min(limits_.max_entries, kMostEntries);
}

Result<> Budget::charge_entry() {
  if (entries_ >= limits_.max_entries) return over("entries", limits_.max_entries);
  ++entries_;
  if (entries_ % 256 == 0) CHECK_OK(check_clock());
  report();
  return check_disk();
}

Result<> Budget::charge_bytes(std::uint64_t bytes) {
  if (bytes > limits_.max_bytes - bytes_) return over("bytes of files", limits_.max_bytes);
  bytes_ += bytes;
  report();
  return check_disk();
}

Result<> Budget::charge_stream(std::uint64_t bytes) {
  std::uint64_t limit = limits_.max_bytes + limits_.max_entries * kEntryCost;
  if (bytes > limit - stream_) return over("bytes", limit);
  stream_ += bytes;
  return check_clock();
}

Result<> Budget::check_ratio(std::uint64_t in, std::uint64_t out) const {
  if (out <= limits_.ratio_after || out / limits_.max_ratio < std::max<std::uint64_t>(in, 1)) return Ok{};
  return Error(Errc::too_large, cat("the archive unpacks to more than ", limits_.max_ratio, " times its size"))
      .with_hint("unpack it outside and import the plain tar if you trust it");
}

Result<> Budget::check_clock() const {
  if (boot_now_nanos() <= deadline_) return Ok{};
  return Error(Errc::timeout, cat("the import took longer than ", limits_.max_nanos / 1'000'000'000, " s"));
}

// The reserve keeps the host alive: its logs and database share this disk.
Result<> check_reserve(const sys::fs::Space& space) {
  std::uint64_t reserve = std::clamp<std::uint64_t>(space.total_bytes / 20, 64 * kMiB, 10240 * kMiB);
  // Some file systems have no size to speak of, or no fixed number of inodes.
  if (space.total_bytes != 0 && space.free_bytes < reserve + kDiskCheckEvery)
    return Error(Errc::exhausted,
                 cat("only ", space.free_bytes / kMiB, " MiB are free on the image store; ", reserve / kMiB, " MiB are kept in reserve"));
  if (space.total_inodes != 0 && space.free_inodes < space.total_inodes / 20)
    return Error(Errc::exhausted, cat("only ", space.free_inodes, " inodes are free on the image store"));
  return Ok{};
}

Result<> Budget::check_disk() {
  std::uint64_t spent = bytes_ + entries_ * kEntryCost;
  if (store_ < 0 || (disk_checked_at_ != 0 && spent - disk_checked_at_ < kDiskCheckEvery)) return Ok{};
  disk_checked_at_ = spent;
  TRY(auto space, sys::fs::space_of(store_));
  return check_reserve(space);
}

void Budget::report() {
  std::uint64_t spent = bytes_ + entries_ * kEntryCost;
  if (!progress_ || spent - reported_at_ < kReportEvery) return;
  reported_at_ = spent;
  progress_(bytes_, entries_);
}

}  // namespace osb::image
