// Descriptors: how OCI and Docker documents point at one another. Read once here for layouts and for registries.
//
// A descriptor that parses has a sha256 digest; its size and types are claims until the bytes are there.
#pragma once
#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace osb::image {

inline constexpr std::string_view kOciIndex = "application/vnd.oci.image.index.v1+json";
inline constexpr std::string_view kOciManifest = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kDockerList = "application/vnd.docker.distribution.manifest.list.v2+json";
inline constexpr std::string_view kDockerManifest = "application/vnd.docker.distribution.manifest.v2+json";

struct Descriptor {
  std::string media_type = {};
  std::string hex = {};  // of the sha256 digest
  std::uint64_t size = 0;
  std::string os = {};
  std::string architecture = {};
  std::string variant = {};
  std::string name = {};
  std::string member() const;  // in a layout
};

bool is_index(const Descriptor& d);
bool is_manifest(const Descriptor& d);
bool is_layer(const Descriptor& d);  // compression is told by the bytes; the type only has to be one of a tar
bool is_for_this_host(const Descriptor& d);

Result<Descriptor> parse_descriptor(const boost::json::value& value);
Result<std::vector<Descriptor>> descriptors_at(const boost::json::object& in, std::string_view key);

// What a manifest names. `layers` are bottom first and all of a type we can unpack.
struct Manifest {
  Descriptor config;
  std::vector<Descriptor> layers;
};
Result<Manifest> parse_manifest(std::string_view text);

}  // namespace osb::image
