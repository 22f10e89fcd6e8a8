// Namespaces made ahead of time: the two costly parts of a sandbox that do not depend on the request.
//
// A part is never used twice. They exist only as descriptors of the launcher, so they vanish with it.
#pragma once
#include <deque>

#include "base/fd.h"
#include "base/result.h"
#include "launch/id_range.h"

namespace osb::launch {

struct Identity {
  std::uint32_t range = 0;
  Fd user_namespace;
  std::uint32_t first_id() const { return first_id_of(range); }
};

class Parts {
 public:
  Parts(IdRanges& ranges, std::size_t keep) : ranges_(ranges), keep_(keep) {}

  // From the pool, or made now when it is empty.
  Result<Identity> take_identity();
  Result<Fd> take_network();

  // Makes at most one missing part; false when the pool is full. Called while the launcher has nothing else to do.
  bool refill_one();

 private:
  Result<Identity> make_identity();

  IdRanges& ranges_;
  std::size_t keep_;
  std::deque<Identity> identities_;
  std::deque<Fd> networks_;
};

}  // namespace osb::launch
