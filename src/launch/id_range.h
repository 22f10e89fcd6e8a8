// Host id ranges: 65,536 ids a sandbox, never host uid 0, never shared by two live sandboxes of one host.
//
// Ranges are taken from the host in blocks of 64, each block marked by a file that names its instance, so that
// several daemons (a private one for a single `run`, say) never meet. Inside an instance ranges rotate first-in-first-out.
#pragma once
#include <cstdint>
#include <deque>
#include <set>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace osb::launch {

inline constexpr std::uint32_t kFirstHostId = 0x40000000;
inline constexpr std::uint32_t kIdsPerRange = 65536;
// One id lies idle between two ranges. The kernel finds a user by the low 14 bits of the id, with 128 lists for all of them: at a
// multiple of 65,536 uid 1000 of every sandbox would be in one and the same list, which every change of identity walks.
inline constexpr std::uint32_t kRangeStride = kIdsPerRange + 1;
inline constexpr std::uint32_t kRangesPerBlock = 64;
inline constexpr std::uint32_t kBlocks = 255;

constexpr std::uint32_t first_id_of(std::uint32_t range) { return kFirstHostId + range * kRangeStride; }
static_assert(first_id_of(kBlocks * kRangesPerBlock) <= 0x80000000u);

class IdRanges {
 public:
  // Re-takes the blocks that are marked with this instance's name already.
  static Result<IdRanges> open(const std::string& directory, const std::string& instance);

  Result<std::uint32_t> take();             // Errc::exhausted when the host has no block left
  void give_back(std::uint32_t range);      // only after no process, mount or file with these ids is left
  Result<> mark_used(std::uint32_t range);  // found in the ledger at start-up
  void release_blocks();                    // when the instance ends for good

 private:
  Result<> take_block();
  void add_block(std::uint32_t block);

  Fd dir_;
  std::string instance_;
  std::set<std::uint32_t> blocks_;
  std::deque<std::uint32_t> free_;
};

}  // namespace osb::launch
