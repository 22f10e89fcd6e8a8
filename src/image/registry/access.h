// What the operator says about registries, and what follows from it for one connection. Pure.
#pragma once
#include <sys/socket.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/image.h"
#include "image/registry/url.h"

namespace osb::image::registry {

// Where an address leads. `local` is never dialled unless its host is trusted by name: link-local (cloud metadata),
// multicast, unspecified, reserved.
enum class Reach { open, inside, loopback, local };
Reach reach_of(const sockaddr* address);

// May be dialled? `from` is where the registry itself was reached: one on the open network cannot send us inside.
Result<> check_reach(Reach to, Reach from, bool first, const Origin& origin, const Registries& registries);

// "host" or "host:port" in a list of the configuration.
bool lists(const std::vector<std::string>& list, const Origin& origin);
// Plain http: loopback by name, or on the operator's list.
bool may_be_plain(const Origin& origin, const Registries& registries);
// The login the configuration has for this registry as the name writes it; empty when none.
RegistryAuth login_for(const Registries& registries, const std::string& registry);

}  // namespace osb::image::registry
