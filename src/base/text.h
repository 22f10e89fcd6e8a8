// Small text helpers that every room needs; no locale, no iostream, safe in static binaries.
#pragma once
#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace osb {

void grow_for(std::string& out, std::size_t more);  // makes room; like append(), never by less than half

inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, const char* text) { out += text; }  // a literal would rather become a bool than a view
inline void append(std::string& out, char c) { out += c; }
inline void append(std::string& out, bool b) { out += b ? "true" : "false"; }
template <std::integral N>
  requires(!std::same_as<N, bool> && !std::same_as<N, char>)
void append(std::string& out, N n) {
  char digits[24];
  auto end = std::to_chars(digits, digits + sizeof digits, n).ptr;
  out.append(digits, end);
}

// How much of `out` a part will need, or a little more.
inline std::size_t room_for(std::string_view text) { return text.size(); }
inline std::size_t room_for(const char* text) { return std::char_traits<char>::length(text); }
template <std::integral N>
constexpr std::size_t room_for(N) {
  return 20;
}

// Appends all parts, growing `out` at most once.
template <class... Parts>
void append_all(std::string& out, const Parts&... parts) {
  grow_for(out, (room_for(parts) + ... + 0));
  (append(out, parts), ...);
}

// cat("port ", 80, " of ", name): concatenation without format strings.
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  append_all(out, parts...);
  return out;
}

// Whole-string decimal parse; no sign for unsigned types, no spaces, no overflow. nullopt otherwise.
template <std::integral N>
std::optional<N> parse_int(std::string_view text) {
  N value{};
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

inline bool starts_with(std::string_view text, std::string_view prefix) { return text.starts_with(prefix); }

// ASCII only; header names and unit suffixes are ASCII by definition.
inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
std::string to_lower(std::string_view text);
bool iequals_same_size(std::string_view a, std::string_view b);
// Most names that are compared differ in length.
inline bool iequals(std::string_view a, std::string_view b) { return a.size() == b.size() && iequals_same_size(a, b); }
std::string_view trim(std::string_view text);                                // spaces and tabs at both ends
std::vector<std::string_view> split(std::string_view text, char separator);  // keeps empty parts

std::string to_hex(std::string_view bytes);

// Appends `text` as a JSON string with quotes. Everything outside printable ASCII is escaped as \uXXXX
// (surrogate pairs above the BMP); invalid UTF-8 becomes U+FFFD. The result is one line of plain ASCII.
void append_json_string(std::string& out, std::string_view text);
std::string json_string(std::string_view text);

// Compares without an early exit; false at once when the lengths differ (lengths are not secret).
bool constant_time_equals(std::string_view a, std::string_view b);

// The candidate closest to `word` by edit distance, if it is close enough to be a typo.
std::optional<std::string_view> nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace osb
