// SHA-256 and HMAC-SHA256 (FIPS 180-4, RFC 2104) in a few hundred bytes of code, for the static programs, which link no
// library of ciphers. Not meant for secrets that an attacker may time: the message, not the key, steers every branch.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace osb {

class Sha256 {
 public:
  static constexpr std::size_t kBlock = 64;
  using Digest = std::array<char, 32>;

  void update(std::string_view bytes);
  Digest finish();  // once

 private:
  void block(const unsigned char* bytes);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, kBlock> rest_{};
  std::uint64_t size_ = 0;
};

std::string sha256_hex(std::string_view bytes);
// Of all parts one after the other.
std::string hmac_sha256_hex(std::string_view key, std::initializer_list<std::string_view> parts);

}  // namespace osb
