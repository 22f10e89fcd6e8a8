// From the name a user gives to the place it is pulled from.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb::image::registry {

struct RemoteName {
  std::string registry;    // "registry.example", "localhost:5000": what was written, for logins and lists
  std::string api_host;    // where its API answers; the same but for one well-known registry
  std::string repository;  // "tools/python"
  std::string tag;         // "latest" when there is none
  std::string digest;      // "sha256:...", "" = the tag decides
  std::string selector() const { return digest.empty() ? tag : digest; }
};

// The first part is a registry when it has a dot or a port, or is "localhost".
bool names_registry(std::string_view reference);
// `default_registry` ("host[:port][/prefix]", "" = none) completes short names; without it those are not_found.
Result<RemoteName> remote_name(std::string_view reference, std::string_view default_registry);

}  // namespace osb::image::registry
