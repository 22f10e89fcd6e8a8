// What the kernel tells about a sandbox beside its groups. Reads only: nothing waits and nothing of the sandbox is followed.
#pragma once
#include <cstdint>
#include <string_view>

#include "sys/fs_open.h"

namespace osb::launch {

// The writable layer of the sandbox whose first process is `pid`; zeros when it cannot be read.
sys::fs::Space store_of(std::int32_t pid);

struct NetworkUsage {
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_bytes = 0;
};
// All interfaces of its network namespace together; zeros when it cannot be read.
NetworkUsage network_of(std::int32_t pid);
NetworkUsage parse_net_dev(std::string_view text);

}  // namespace osb::launch
