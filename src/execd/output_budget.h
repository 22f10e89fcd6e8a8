// OutputBudget: everything that is kept of programs' output shares one bound, and who is ended and old gives way first.
#pragma once
#include <array>

#include "execd/ring.h"

namespace osb::execd {

// A table of things that keep output.
class OutputKeeper {
 public:
  virtual ~OutputKeeper() = default;
  // Forgets the output of the oldest one that has ended and is not `asker`; false when there is none.
  virtual bool release_oldest(const void* asker) = 0;
};

class OutputBudget final : public RingBudget {
 public:
  static constexpr std::size_t kAllBytes = 8 * 1024 * 1024;

  // Keepers are asked in the order they were added, and outlive every ring.
  void add(OutputKeeper& keeper) {
    for (OutputKeeper*& place : keepers_)
      if (!place) return void(place = &keeper);
  }
  bool take(std::size_t bytes, const void* asker) override {
    while (used_ + bytes > kAllBytes)
      if (!release_one(asker)) return false;
    used_ += bytes;
    return true;
  }
  void give(std::size_t bytes) override { used_ -= bytes; }

 private:
  bool release_one(const void* asker) {
    for (OutputKeeper* keeper : keepers_)
      if (keeper && keeper->release_oldest(asker)) return true;
    return false;
  }

  std::array<OutputKeeper*, 4> keepers_{};
  std::size_t used_ = 0;
};

}  // namespace osb::execd
