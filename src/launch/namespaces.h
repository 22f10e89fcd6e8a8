// User and network namespaces, made ahead of the process that will live in them.
#pragma once
#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace osb::launch {

// Where the switches of new namespaces are set: a /proc of the launcher's own. The kernel keeps a name for every namespace that looked
// a switch up, for as long as that namespace lives, and compares them one after the other. So a view serves a few namespaces
// and then makes place for the next.
class Switches {
 public:
  // A directory; good until the next call.
  Result<int> proc();

 private:
  static constexpr unsigned kUses = 32;
  Fd view_;
  unsigned uses_ = 0;
};

// A user namespace whose ids 0..65535 are the host's first_id.., and in which no further user namespace can be made.
Result<Fd> make_user_namespace(Switches& switches, std::uint32_t first_id);

// For mounts: id `uid`:`gid` on disk is `outside` to the sandbox and no other id is anybody.
Result<Fd> make_volume_namespace(Switches& switches, std::uint32_t uid, std::uint32_t gid, std::uint32_t outside);

struct Network {
  Fd ns;
  Fd devices;         // its net/dev
  Fd sockets;         // its net/sockstat
  std::string fresh;  // what net/dev said when it was made
};

// A network namespace with nothing but `lo`, up. It belongs to the initial user namespace, so root inside a sandbox has
// no power over it; low ports are open to every user instead of a capability.
// Precondition: the caller is single-threaded (it visits the new namespace and comes back).
Result<Network> make_network_namespace(Switches& switches);

// Nobody has a socket in it, and no packet ever passed its loopback: then nothing in it can tell of whoever lived there.
bool is_untouched(const Network& network);

// An unconnected TCP socket that lives in the network namespace of `pid`. Same precondition.
Result<Fd> socket_in_network_of(std::int32_t pid);

}  // namespace osb::launch
