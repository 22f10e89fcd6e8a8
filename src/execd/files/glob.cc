#include "execd/files/glob.h"

#include <bitset>

#include "base/text.h"

namespace osb::execd::files {
namespace {

constexpr std::size_t kMaxName = 255;
constexpr int kMaxDepth = 16;

using Positions = std::bitset<kMaxName + 1>;

std::size_t char_bytes(std::string_view text, std::size_t at) {
  auto lead = static_cast<unsigned char>(text[at]);
  std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  return std::min(size, text.size() - at);
}

// A character as a number: its bytes in order, which is also how code points compare.
std::uint32_t char_at(std::string_view text, std::size_t at, std::size_t& size) {
  size = char_bytes(text, at);
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value = value << 8 | static_cast<unsigned char>(text[at + i]);
  return value;
}

// Index behind the bracket that closes the one before `at`; npos when none does.
std::size_t end_of_group(std::string_view pattern, std::size_t at, char close);

std::size_t end_of_class(std::string_view pattern, std::size_t at) {
  if (at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^')) ++at;
  for (bool first = true; at < pattern.size(); first = false, ++at) {
    if (pattern[at] == ']' && !first) return at + 1;
    if (pattern[at] == '\\') ++at;
  }
  return pattern.npos;
}

// Index behind the piece of pattern that begins at `at`.
std::size_t end_of_piece(std::string_view pattern, std::size_t at) {
  switch (pattern[at]) {
    case '\\': return at + 1 < pattern.size() ? at + 1 + char_bytes(pattern, at + 1) : pattern.npos;
    case '[': return end_of_class(pattern, at + 1);
    case '{': return end_of_group(pattern, at + 1, '}');
    case '!':
      if (at + 1 < pattern.size() && pattern[at + 1] == '(') return end_of_group(pattern, at + 2, ')');
      return at + 1;
    default: return at + char_bytes(pattern, at);
  }
}

std::size_t end_of_group(std::string_view pattern, std::size_t at, char close) {
  while (at < pattern.size()) {
    if (pattern[at] == close) return at + 1;
    at = end_of_piece(pattern, at);
  }
  return pattern.npos;
}

class Matcher {
 public:
  explicit Matcher(std::string_view name) : name_(name) {}

  Positions run(std::string_view pattern, Positions from) const {
    while (!pattern.empty() && from.any()) {
      auto end = std::min(end_of_piece(pattern, 0), pattern.size());
      from = step(pattern.substr(0, end), from);
      pattern.remove_prefix(end);
    }
    return from;
  }

 private:
  Positions step(std::string_view piece, const Positions& from) const {
    switch (piece[0]) {
      case '*': return from_first(from);
      case '{': return any_of(piece.substr(1, piece.size() - 2), ',', from);
      case '!':
        if (piece.size() > 1) return none_of(piece.substr(2, piece.size() - 3), from);
        break;
      default: break;
    }
    Positions to;
    for (std::size_t at = 0; at < name_.size(); ++at) {
      if (!from[at]) continue;
      std::size_t size = 0;
      if (fits(piece, char_at(name_, at, size))) to.set(at + size);
    }
    return to;
  }

  static bool fits(std::string_view piece, std::uint32_t c) {
    std::size_t size = 0;
    if (piece[0] == '?') return true;
    if (piece[0] == '[') return in_class(piece.substr(1, piece.size() - 2), c);
    if (piece[0] == '\\') piece.remove_prefix(1);
    return char_at(piece, 0, size) == c;
  }

  static std::uint32_t take_char(std::string_view& text) {
    if (text[0] == '\\' && text.size() > 1) text.remove_prefix(1);
    std::size_t size = 0;
    auto c = char_at(text, 0, size);
    text.remove_prefix(size);
    return c;
  }

  static bool in_class(std::string_view set, std::uint32_t c) {
    bool negated = set.starts_with('!') || set.starts_with('^');
    if (negated) set.remove_prefix(1);
    while (!set.empty()) {
      auto low = take_char(set);
      auto high = low;
      if (set.size() > 1 && set[0] == '-') {
        set.remove_prefix(1);
        high = take_char(set);
      }
      if (c >= low && c <= high) return !negated;
    }
    return negated;
  }

  Positions from_first(const Positions& from) const {
    Positions to;
    std::size_t at = 0;
    while (!from[at]) ++at;
    for (; at <= name_.size(); ++at) to.set(at);
    return to;
  }

  Positions any_of(std::string_view choices, char separator, const Positions& from) const {
    Positions to;
    for (std::size_t start = 0, at = 0;; at = end_of_piece(choices, at)) {
      bool last = at >= choices.size();
      if (!last && choices[at] != separator) continue;
      to |= run(choices.substr(start, last ? choices.npos : at - start), from);
      if (last) return to;
      start = at + 1;
    }
  }

  Positions none_of(std::string_view choices, const Positions& from) const {
    Positions to;
    for (std::size_t at = 0; at <= name_.size(); ++at) {
      if (!from[at]) continue;
      Positions here;
      here.set(at);
      to |= from_first(here) & ~any_of(choices, '|', here);
    }
    return to;
  }

  std::string_view name_;
};

Error bad(std::string_view why) { return Error(Errc::invalid_argument, cat("the pattern ", why)).with_code("INVALID_REQUEST_BODY"); }

Result<> check(std::string_view pattern, int depth, bool inside_not) {
  if (depth > kMaxDepth) return bad("is nested too deeply");
  for (std::size_t at = 0; at < pattern.size();) {
    auto end = end_of_piece(pattern, at);
    if (end == pattern.npos || end > pattern.size()) return bad("has a bracket or a backslash without its other half");
    bool is_not = pattern[at] == '!' && end > at + 1;
    if (is_not && inside_not) return bad("has \"!(\" inside \"!(\"");
    if (is_not) CHECK_OK(check(pattern.substr(at + 2, end - at - 3), depth + 1, true));
    if (pattern[at] == '{') CHECK_OK(check(pattern.substr(at + 1, end - at - 2), depth + 1, inside_not));
    at = end;
  }
  return Ok{};
}

}  // namespace

Result<Glob> Glob::parse(std::string_view pattern) {
  if (pattern.size() > kMaxPattern) return bad(cat("is longer than ", kMaxPattern, " bytes"));
  // Depth is known before the scanner recurses into the groups.
  int depth = 0;
  for (char c : pattern) {
    depth = std::max(0, depth + (c == '{' || c == '(') - (c == '}' || c == ')'));
    if (depth > kMaxDepth) return bad("is nested too deeply");
  }
  CHECK_OK(check(pattern, 0, false));
  return Glob(pattern);
}

bool Glob::matches(std::string_view name) const {
  if (name.size() > kMaxName) return false;
  Positions start;
  start.set(0);
  return Matcher(name).run(pattern_, start)[name.size()];
}

}  // namespace osb::execd::files
