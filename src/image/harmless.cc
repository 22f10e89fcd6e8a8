#include "image/harmless.h"

#include <cstdint>
#include <optional>

#include "base/text.h"

namespace osb::image {
namespace {

bool has_private_key(std::string_view content) { return content.find("PRIVATE KEY") != content.npos; }

bool sets_a_secret(std::string_view line) {
  line = trim(line);
  if (line.empty() || line.front() == '#' || line.front() == ';') return false;
  std::string low = to_lower(line.substr(0, 4096));
  for (const char* word : {"password", "passwd", "secret", "token", "credential"}) {
    std::size_t at = low.find(word);
    // A word of documentation or of code does no harm; a value after it may.
    if (at != low.npos && low.find_first_of("=:", at) != low.npos) return true;
  }
  return false;
}

// Big-endian reads with bounds; nullopt past the end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::optional<std::uint64_t> number(std::size_t bytes) {
    if (rest_.size() < bytes) return std::nullopt;
    std::uint64_t value = 0;
    for (char c : rest_.substr(0, bytes)) value = value << 8 | static_cast<unsigned char>(c);
    rest_.remove_prefix(bytes);
    return value;
  }
  bool skip(std::optional<std::uint64_t> bytes) {
    if (!bytes || *bytes > rest_.size()) return false;
    rest_.remove_prefix(*bytes);
    return true;
  }

 private:
  std::string_view rest_;
};

// Java key store: magic, version 2, count, then entries: tag (1 = private key, 2 = certificate), alias, time, content.
bool is_certificate_key_store(std::string_view content) {
  constexpr std::uint64_t kMagic = 0xfeedfeed;
  Reader in(content);
  if (in.number(4) != kMagic || in.number(4) != 2u) return false;
  auto count = in.number(4);
  if (!count) return false;
  for (std::uint64_t i = 0; i < *count; ++i) {
    if (in.number(4) != 2u) return false;
    bool whole = in.skip(in.number(2)) && in.skip(8) && in.skip(in.number(2)) && in.skip(in.number(4));
    if (!whole) return false;
  }
  return true;
}

}  // namespace

bool is_free_of_secrets(std::string_view content) {
  if (has_private_key(content)) return false;
  for (std::string_view line : split(content, '\n'))
    if (sets_a_secret(line)) return false;
  return true;
}

bool is_public_certificates(std::string_view content) {
  if (has_private_key(content)) return false;
  bool pem =
      content.find("-----BEGIN CERTIFICATE-----") != content.npos || content.find("-----BEGIN TRUSTED CERTIFICATE-----") != content.npos;
  return pem || is_certificate_key_store(content);
}

}  // namespace osb::image
