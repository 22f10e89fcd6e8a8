// User and network namespaces, made ahead of the process that will live in them.
#pragma once
#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace osb::launch {

// A user namespace whose ids 0..65535 are the host's first_id.., and in which no further user namespace can be made.
Result<Fd> make_user_namespace(std::uint32_t first_id);

// A network namespace with nothing but `lo`, up. It belongs to the initial user namespace, so root inside a sandbox has
// no power over it; low ports are open to every user instead of a capability.
// Precondition: the caller is single-threaded (it visits the new namespace and comes back).
// For mounts: id `uid`:`gid` on disk is `outside` to the sandbox and no other id is anybody.
Result<Fd> make_volume_namespace(std::uint32_t uid, std::uint32_t gid, std::uint32_t outside);

Result<Fd> make_network_namespace();

// An unconnected TCP socket that lives in the network namespace of `pid`. Same precondition.
Result<Fd> socket_in_network_of(std::int32_t pid);

}  // namespace osb::launch
