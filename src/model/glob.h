// Glob patterns: `*` any text (also '/'), `?` one character, `[abc]`, `[a-z]`, `[!a]`, and `\` before a character that means itself.
//
// Matching takes at most pattern × text steps, whatever the pattern: every `*` goes back to itself alone.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb {

inline constexpr std::size_t kMaxGlobBytes = 256;

// Errc::invalid_argument: empty, too long, an open set, a backslash before nothing.
Result<> check_glob(std::string_view pattern);

// Whole-text match of a checked pattern. `steps`, where given, counts the work that was done.
bool glob_matches(std::string_view pattern, std::string_view text, std::size_t* steps = nullptr);

// The plain text a pattern begins and ends with: what every match begins and ends with.
std::string glob_prefix(std::string_view pattern);
std::string glob_suffix(std::string_view pattern);
bool glob_is_all(std::string_view pattern);  // "*", "**": matches everything

}  // namespace osb
