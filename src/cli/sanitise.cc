#include "cli/sanitise.h"

#include <cstdint>
#include <cstdio>

namespace osb::cli {
namespace {

struct Step {
  std::uint32_t point = 0;
  std::size_t bytes = 0;  // 0: the first byte does not begin a valid sequence
};

Step next(std::string_view s) {
  auto at = [&](std::size_t i) -> std::uint32_t { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  auto tail = [&](std::size_t i) { return (at(i) & 0xC0u) == 0x80u; };
  std::uint32_t b = at(0);
  if (b < 0x80) return {b, 1};
  if (b >= 0xC2 && b <= 0xDF && tail(1)) return {(b & 0x1Fu) << 6 | (at(1) & 0x3Fu), 2};
  if (b >= 0xE0 && b <= 0xEF && tail(1) && tail(2)) {
    std::uint32_t point = (b & 0x0Fu) << 12 | (at(1) & 0x3Fu) << 6 | (at(2) & 0x3Fu);
    if (point >= 0x800 && (point < 0xD800 || point > 0xDFFF)) return {point, 3};
  }
  if (b >= 0xF0 && b <= 0xF4 && tail(1) && tail(2) && tail(3)) {
    std::uint32_t point = (b & 0x07u) << 18 | (at(1) & 0x3Fu) << 12 | (at(2) & 0x3Fu) << 6 | (at(3) & 0x3Fu);
    if (point >= 0x10000 && point <= 0x10FFFF) return {point, 4};
  }
  return {};
}

bool is_harmless(std::uint32_t point) {
  if (point < 0x20 || (point >= 0x7F && point <= 0x9F)) return false;
  if (point == 0x2028 || point == 0x2029 || point == 0xFEFF || point == 0x061C) return false;
  if ((point >= 0x200B && point <= 0x200F) || (point >= 0x202A && point <= 0x202E)) return false;  // invisible, direction
  if (point >= 0x2060 && point <= 0x206F) return false;
  return point < 0xE0000 || point > 0xE007F;  // tags: text nobody sees
}

void append_escaped(std::string& out, std::uint32_t point) {
  char text[16];
  const char* format = point <= 0xFF ? "\\x%02x" : "\\u{%x}";
  switch (point) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  std::snprintf(text, sizeof text, format, point);
  out += text;
}

}  // namespace

std::string sanitise(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    Step step = next(text);
    if (step.bytes == 0) {
      append_escaped(out, static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    if (is_harmless(step.point)) {
      out += text.substr(0, step.bytes);
    } else {
      append_escaped(out, step.point);
    }
    text.remove_prefix(step.bytes);
  }
  return out;
}

std::size_t width_of(std::string_view sanitised) {
  std::size_t width = 0;
  for (char c : sanitised) width += (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  return width;
}

}  // namespace osb::cli
