#include "api/plain_text.h"

#include <cstdint>

namespace osb::api {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Length of the UTF-8 sequence at the front, 0 when there is none. Overlong forms and surrogates are none.
std::size_t sequence_at(std::string_view text) {
  auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto follows = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  unsigned a = byte(0), b = byte(1);
  if (a < 0x80) return 1;
  if (a >= 0xc2 && a <= 0xdf) return follows(1) ? 2 : 0;
  if (a >= 0xe0 && a <= 0xef) {
    bool fine = !(a == 0xe0 && b < 0xa0) && !(a == 0xed && b > 0x9f);
    return fine && follows(1) && follows(2) ? 3 : 0;
  }
  if (a >= 0xf0 && a <= 0xf4) {
    bool fine = !(a == 0xf0 && b < 0x90) && !(a == 0xf4 && b > 0x8f);
    return fine && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

bool is_control(std::string_view sequence) {
  auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
  return sequence.size() == 2 && first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;  // C1
}

}  // namespace

std::string plain_text(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    if (bytes[0] == '\r') {
      bytes.remove_prefix(bytes.size() > 1 && bytes[1] == '\n' ? 2 : 1);
      out += '\n';
      continue;
    }
    auto size = sequence_at(bytes);
    auto sequence = bytes.substr(0, size == 0 ? 1 : size);
    out += size == 0 || is_control(sequence) ? kReplacement : sequence;
    bytes.remove_prefix(sequence.size());
  }
  return out;
}

std::string_view last_lines(std::string_view text, std::size_t lines, std::size_t bytes, bool& cut) {
  auto all = text.size();
  if (text.size() > bytes) {
    text.remove_prefix(text.size() - bytes);
    auto next = text.find('\n');
    if (next != std::string_view::npos && next + 1 < text.size()) text.remove_prefix(next + 1);
    while (!text.empty() && (text[0] & 0xc0) == 0x80) text.remove_prefix(1);
  }
  std::size_t at = text.size();
  if (at > 0 && text[at - 1] == '\n') --at;
  for (std::size_t seen = 0; at > 0; --at)
    if (text[at - 1] == '\n' && ++seen == lines) break;
  text.remove_prefix(at);
  cut = cut || text.size() < all;
  return text;
}

}  // namespace osb::api
