// Names of images: "debian", "debian:12", "registry.example:5000/tools/python:3.12", "tools/python@sha256:<64 hex>",
// "sha256:<64 hex>", "host".
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb::image {

inline constexpr std::size_t kMaxName = 240;
inline constexpr std::string_view kHostName = "host";

// The parts of a name; of "a:1@sha256:..." the digest decides and the tag is only a remark.
struct NameParts {
  std::string path;    // with the registry, where the name has one
  std::string tag;     // "latest" when there is none
  std::string digest;  // "sha256:...", "" when there is none
};
Result<NameParts> split_name(std::string_view reference);

// The full name: parts of [a-z0-9] with . _ - between, joined by /, then "@digest" or ":tag" ("latest" when
// there is none).
// "host" and "sha256:<hex>" stay as they are. invalid_argument, with the rule as hint, for anything else.
Result<std::string> full_name(std::string_view reference);
// As full_name, for a name to be given: "host" and "sha256" are taken.
Result<std::string> new_name(std::string_view reference);
// A name found inside an archive: registry prefixes that people leave out are left out.
std::string short_name(std::string_view found);

// The file of a name, and back. Preconditions: `name` came from full_name().
std::string file_of(std::string_view name);

}  // namespace osb::image
