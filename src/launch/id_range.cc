#include "launch/id_range.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "sys/kernel_file.h"

namespace osb::launch {
namespace {

// A range comes back into use only after this many others were used: old ids fade from caches and logs.
constexpr std::size_t kRotation = 32;

}  // namespace

Result<IdRanges> IdRanges::open(const std::string& directory, const std::string& instance) {
  CHECK_OK(sys::make_dirs(directory, 0755));
  IdRanges ranges;
  ranges.instance_ = instance;
  TRY(ranges.dir_, sys::open_at(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY));
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    auto owner = sys::read_at(ranges.dir_.get(), cat(block).c_str(), 256);
    if (owner && *owner == instance) ranges.add_block(block);
  }
  return ranges;
}

void IdRanges::add_block(std::uint32_t block) {
  blocks_.insert(block);
  for (std::uint32_t i = 0; i < kRangesPerBlock; ++i) free_.push_back(block * kRangesPerBlock + i);
}

Result<> IdRanges::take_block() {
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    auto made = sys::write_new_file(dir_.get(), cat(block).c_str(), instance_, 0644);
    if (made) {
      add_block(block);
      return Ok{};
    }
    if (made.error().sys() != EEXIST) return made;
  }
  return Error(Errc::exhausted, "every id range of this host is taken", ENOSPC);
}

Result<std::uint32_t> IdRanges::take() {
  if (free_.size() <= kRotation) {
    auto more = take_block();
    if (!more && free_.empty()) return std::move(more).error();
  }
  auto range = free_.front();
  free_.pop_front();
  return range;
}

void IdRanges::give_back(std::uint32_t range) { free_.push_back(range); }

Result<> IdRanges::mark_used(std::uint32_t range) {
  auto at = std::find(free_.begin(), free_.end(), range);
  if (at == free_.end()) return Error(Errc::conflict, cat("id range ", range, " is not ours or used twice"));
  free_.erase(at);
  return Ok{};
}

void IdRanges::release_blocks() {
  for (auto block : blocks_) ::unlinkat(dir_.get(), cat(block).c_str(), 0);
  blocks_.clear();
  free_.clear();
}

}  // namespace osb::launch
