#include "model/glob.h"

#include "base/text.h"

namespace osb {
namespace {

constexpr auto npos = std::string_view::npos;

// One element of a pattern that stands for one character.
struct Element {
  enum class Kind { literal, any, set } kind = Kind::literal;
  char literal = 0;
  std::size_t end = 0;  // where the next element begins
};

// The end of the set that begins at `at`; npos when it is open. "]" directly after "[" or "[!" is a member.
std::size_t set_end(std::string_view pattern, std::size_t at) {
  std::size_t i = at + 1;
  if (i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^')) ++i;
  for (std::size_t first = i; i < pattern.size(); ++i)
    if (pattern[i] == ']' && i > first) return i + 1;
  return npos;
}

Element element_at(std::string_view pattern, std::size_t at) {
  char c = pattern[at];
  if (c == '?') return {Element::Kind::any, 0, at + 1};
  if (c == '[') return {Element::Kind::set, 0, set_end(pattern, at)};
  if (c == '\\') return {Element::Kind::literal, pattern[at + 1], at + 2};
  return {Element::Kind::literal, c, at + 1};
}

bool in_set(std::string_view set, char c) {  // set: "[...]"
  bool negated = set[1] == '!' || set[1] == '^';
  bool found = false;
  auto byte = static_cast<unsigned char>(c);
  for (std::size_t i = negated ? 2 : 1; i + 1 < set.size(); ++i) {
    auto low = static_cast<unsigned char>(set[i]);
    bool range = i + 3 < set.size() && set[i + 1] == '-';
    auto high = range ? static_cast<unsigned char>(set[i + 2]) : low;
    found = found || (low <= byte && byte <= high);
    if (range) i += 2;
  }
  return found != negated;
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Bytes of the character at `at`: a lead byte and what continues it.
std::size_t character(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  if (static_cast<unsigned char>(text[at]) < 0xC0) return 1;
  while (end < text.size() && end - at < 4 && continues(text[end])) ++end;
  return end - at;
}

// How many bytes of the text the element takes; 0 = it does not match.
std::size_t take(std::string_view pattern, std::size_t at, const Element& element, std::string_view text, std::size_t from) {
  switch (element.kind) {
    case Element::Kind::literal: return text[from] == element.literal ? 1 : 0;
    case Element::Kind::any: return character(text, from);
    case Element::Kind::set: return in_set(pattern.substr(at, element.end - at), text[from]) ? 1 : 0;
  }
  return 0;
}

}  // namespace

Result<> check_glob(std::string_view pattern) {
  if (pattern.empty()) return Error(Errc::invalid_argument, "a pattern must not be empty");
  if (pattern.size() > kMaxGlobBytes) return Error(Errc::invalid_argument, cat("a pattern has at most ", kMaxGlobBytes, " bytes"));
  if (pattern.find('\0') != npos) return Error(Errc::invalid_argument, "a pattern must not contain a zero byte");
  for (std::size_t i = 0; i < pattern.size();) {
    if (pattern[i] == '\\' && i + 1 == pattern.size()) return Error(Errc::invalid_argument, "a backslash at the end quotes nothing");
    if (pattern[i] == '[' && set_end(pattern, i) == npos)
      return Error(Errc::invalid_argument, "a set is not closed; write \\[ for the character itself");
    i = pattern[i] == '*' ? i + 1 : element_at(pattern, i).end;
  }
  return Ok{};
}

bool glob_matches(std::string_view pattern, std::string_view text, std::size_t* steps) {
  std::size_t p = 0, t = 0, work = 0;
  std::size_t star = npos, resume = 0;  // after the last '*', and where in the text it is tried again
  bool matched = true;
  while (t < text.size() || p < pattern.size()) {
    ++work;
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      resume = t;
      if (p == pattern.size()) break;  // the rest, whatever it is
      continue;
    }
    if (p < pattern.size() && t < text.size()) {
      auto element = element_at(pattern, p);
      if (auto taken = take(pattern, p, element, text, t); taken > 0) {
        p = element.end;
        t += taken;
        continue;
      }
    }
    if (star == npos || resume >= text.size()) {
      matched = false;
      break;
    }
    p = star;
    t = ++resume;
  }
  if (steps) *steps += work;
  return matched;
}

std::string glob_prefix(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size();) {
    if (pattern[i] == '*' || pattern[i] == '?' || pattern[i] == '[') break;
    auto element = element_at(pattern, i);
    out += element.literal;
    i = element.end;
  }
  return out;
}

std::string glob_suffix(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size();) {
    if (pattern[i] == '*') {
      out.clear();
      ++i;
      continue;
    }
    auto element = element_at(pattern, i);
    if (element.kind == Element::Kind::literal)
      out += element.literal;
    else
      out.clear();
    i = element.end;
  }
  return out;
}

bool glob_is_all(std::string_view pattern) { return pattern.find_first_not_of('*') == npos; }

}  // namespace osb
