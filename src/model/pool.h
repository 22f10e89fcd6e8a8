// Named pools: sandboxes of one shape, some of them made ahead of time. Plain values.
#pragma once
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "model/sandbox.h"

namespace osb {

// Numbers of sandboxes. The buffer is what waits to be claimed; the pool is that and the claimed ones that live.
struct PoolCapacity {
  std::uint32_t buffer_min = 0;
  std::uint32_t buffer_max = 0;
  std::uint32_t pool_min = 0;
  std::uint32_t pool_max = 0;
  bool operator==(const PoolCapacity&) const = default;
};

struct PoolRecord {
  std::string name;
  std::string owner;  // name of the API key that made it; "" = everybody's
  // Image, limits and policy of every sandbox; entrypoint and environment of those whose request does not say.
  SandboxSpec spec;
  PoolCapacity capacity;
  WallTime created_at;
};

}  // namespace osb
