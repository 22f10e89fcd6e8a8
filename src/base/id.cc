#include "base/id.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

#include "base/text.h"

namespace osb {
namespace {

void fill_random(char* out, std::size_t size) {
  while (size > 0) {
    auto n = ::getrandom(out, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) std::abort();  // without randomness no id is unguessable; nothing safe is left to do
    out += n;
    size -= static_cast<std::size_t>(n);
  }
}

}  // namespace

bool is_id_text(std::string_view text) noexcept {
  if (text.size() != kIdLength) return false;
  for (char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) return false;
  return true;
}

std::string random_id_text() {
  // 32 symbols x 26 characters = 130 bits; letters that read like digits are left out.
  static constexpr char kAlphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
  char raw[kIdLength];
  fill_random(raw, sizeof raw);
  std::string out;
  for (char c : raw) out += kAlphabet[static_cast<unsigned char>(c) & 31];
  return out;
}

std::string random_hex(std::size_t bytes) {
  std::string raw(bytes, '\0');
  fill_random(raw.data(), raw.size());
  return to_hex(raw);
}

}  // namespace osb
