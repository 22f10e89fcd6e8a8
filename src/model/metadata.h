// Metadata of a sandbox: Kubernetes label syntax, with one reserved prefix.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/sandbox.h"

namespace osb {

using MetadataPatch = std::map<std::string, std::optional<std::string>>;  // nullopt = remove the key

// key = [prefix "/"] name: prefix a DNS name of at most 253, name at most 63 of [A-Za-z0-9._-] with letters or digits
// at both ends; value at most 63 of the same alphabet or empty. Prefix "opensandbox.io" is ours.
Result<> check_metadata_key(std::string_view key);
Result<> check_metadata_value(std::string_view key, std::string_view value);

// PATCH body: a flat object, string = set, null = remove. Code INVALID_METADATA_LABEL (without prefix, as clients know it).
Result<MetadataPatch> parse_metadata_patch(std::string_view body);

}  // namespace osb
