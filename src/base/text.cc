#include "base/text.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

namespace osb {

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

bool iequals_same_size(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return x == y || lower(x) == lower(y); });
}

void grow_for(std::string& out, std::size_t more) {
  auto wanted = out.size() + more;
  if (wanted > out.capacity()) out.reserve(std::max(wanted, out.size() + out.size() / 2));
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string to_hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out(bytes.size() * 2, '\0');
  char* to = out.data();
  for (char c : bytes) {
    auto b = static_cast<unsigned char>(c);
    *to++ = kDigits[b >> 4];
    *to++ = kDigits[b & 15];
  }
  return out;
}

namespace {

struct CodePoint {
  std::uint32_t value;
  std::size_t length;  // bytes consumed; 0 = invalid sequence
};

// Decodes one UTF-8 sequence; overlong forms, surrogates and values past U+10FFFF are invalid.
CodePoint decode_utf8(std::string_view s) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  auto tail = [&](std::size_t i) { return i < s.size() && (byte(i) & 0xC0) == 0x80; };
  unsigned char b = byte(0);
  if (b < 0x80) return {b, 1};
  if (b >= 0xC2 && b <= 0xDF && tail(1)) return {(b & 0x1Fu) << 6 | (byte(1) & 0x3Fu), 2};
  if (b >= 0xE0 && b <= 0xEF && tail(1) && tail(2)) {
    std::uint32_t v = (b & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    if (v >= 0x800 && (v < 0xD800 || v > 0xDFFF)) return {v, 3};
  }
  if (b >= 0xF0 && b <= 0xF4 && tail(1) && tail(2) && tail(3)) {
    std::uint32_t v = (b & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
    if (v >= 0x10000 && v <= 0x10FFFF) return {v, 4};
  }
  return {0xFFFD, 0};
}

void append_u(std::string& out, std::uint32_t unit) {
  static constexpr char kDigits[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[(unit >> shift) & 15];
}

}  // namespace

namespace {

// How many bytes at the front stand for themselves in JSON: 0x20 to 0x7E but for the quote and the backslash. Eight at a time; the
// tests mark such a byte in its highest bit, and a borrow can only reach bytes behind one that is marked already.
std::size_t plain_run(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  auto has_zero = [](std::uint64_t v) { return (v - kOnes) & ~v; };
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t v;
    std::memcpy(&v, text.data() + at, 8);
    auto marked = (v | (v - kOnes * 0x20) | (v + kOnes) | has_zero(v ^ kOnes * '"') | has_zero(v ^ kOnes * '\\')) & kHigh;
    if (marked != 0) return at + static_cast<std::size_t>(std::countr_zero(marked)) / 8;
  }
  auto plain = [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; };
  while (at < text.size() && plain(text[at])) ++at;
  return at;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  static_assert(std::endian::native == std::endian::little);
  grow_for(out, text.size() + 2);
  out += '"';
  while (!text.empty()) {
    auto run = plain_run(text);
    out.append(text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) break;
    switch (text.front()) {
      case '"':
        out += "\\\"";
        text.remove_prefix(1);
        continue;
      case '\\':
        out += "\\\\";
        text.remove_prefix(1);
        continue;
      case '\n':
        out += "\\n";
        text.remove_prefix(1);
        continue;
      case '\r':
        out += "\\r";
        text.remove_prefix(1);
        continue;
      case '\t':
        out += "\\t";
        text.remove_prefix(1);
        continue;
      default: break;
    }
    CodePoint point = decode_utf8(text);
    text.remove_prefix(point.length == 0 ? 1 : point.length);
    if (point.value >= 0x10000) {
      append_u(out, 0xD800 + ((point.value - 0x10000) >> 10));
      append_u(out, 0xDC00 + ((point.value - 0x10000) & 0x3FF));
    } else {
      append_u(out, point.value);
    }
  }
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

bool constant_time_equals(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string_view> nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::optional<std::string_view> best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (auto candidate : candidates) {
    auto distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace osb
