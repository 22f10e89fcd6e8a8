// Patterns for names of files: "*", "**", "?", "[a-z]", "[!a]", "{a,b}", "!(a|b)", "\" before a character for itself.
//
// Matching carries the set of all positions that are reachable, so its time is bounded by pattern times name whatever
// the pattern is; nothing backtracks and alternatives are never multiplied out.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb::execd::files {

class Glob {
 public:
  static constexpr std::size_t kMaxPattern = 1024;
  // Errc::invalid_argument: too long, a bracket that does not close, nested deeper than 16, or "!(" inside "!(".
  static Result<Glob> parse(std::string_view pattern);
  // `name` is one component: at most 255 bytes. Anything else matches nothing.
  bool matches(std::string_view name) const;

 private:
  explicit Glob(std::string_view pattern) : pattern_(pattern) {}
  std::string pattern_;
};

}  // namespace osb::execd::files
