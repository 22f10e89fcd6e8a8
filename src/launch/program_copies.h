// execd in as many sealed copies as there must be.
//
// The kernel lists all processes that have a file in memory in one place. Whoever looks after its pages (reclaim, migration, DAMON) goes
// through that list with a lock that every division and every end has to take: with 10,000 sandboxes on one file they waited 16 ms
// for it, again and again. So a copy is for as many sandboxes at a time as make no difference.
#pragma once
#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace osb::launch {

using ProgramCopy = std::shared_ptr<const Fd>;  // every process that runs it has one in its books: that is how they are counted

class ProgramCopies {
 public:
  explicit ProgramCopies(const Fd& program) : program_(program) {}

  // One that is not crowded, made if there is none. Where that fails, the one with the fewest users.
  Result<ProgramCopy> take();
  static bool is_crowded(const ProgramCopy& copy) { return copy.use_count() > kUsers; }

 private:
  static constexpr long kUsers = 512;

  const Fd& program_;
  std::vector<std::weak_ptr<const Fd>> copies_;
};

}  // namespace osb::launch
