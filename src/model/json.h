// JSON from outside: bounded, strict, parsed once.
//
// Refused: more than 1 MiB, deeper than 64, duplicate members, invalid UTF-8, lone surrogates, a byte order mark,
// trailing bytes, NaN and Infinity, numbers that no double holds. The error says where, never what the text was.
#pragma once
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/sandbox.h"

namespace osb {

inline constexpr std::size_t kMaxJsonBytes = 1024 * 1024;
inline constexpr std::size_t kMaxJsonDepth = 64;

struct JsonLimits {
  std::size_t bytes = kMaxJsonBytes;
  std::size_t depth = kMaxJsonDepth;
};

// Errc::too_large past the size, Errc::invalid_argument for everything that is not strict JSON.
Result<boost::json::value> parse_json(std::string_view text, JsonLimits limits = {});
// The same, and the outermost value is an object (Errc::malformed otherwise).
Result<boost::json::object> parse_json_object(std::string_view text, JsonLimits limits = {});

// Compact writers for values of ours; plain ASCII, one line.
void append_json_map(std::string& out, const StringMap& map);
void append_json_list(std::string& out, const std::vector<std::string>& list);

}  // namespace osb
