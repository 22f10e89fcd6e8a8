// A SandboxSpec as JSON text and back, and the sum that tells a damaged row.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/sandbox.h"

namespace osb::store {

std::string write_spec(const SandboxSpec& spec);
// Members that are not there keep their defaults, so that rows of an older version still read.
Result<SandboxSpec> read_spec(std::string_view text);

// Over everything of the record; `spec` is its text as stored.
std::int64_t sum_of(const Sandbox& sandbox, std::string_view spec);

std::string write_list(const std::vector<std::string>& list);
Result<std::vector<std::string>> read_list(std::string_view text);

}  // namespace osb::store
