#include "base/sha256.h"

#include <algorithm>
#include <bit>

#include "base/text.h"

namespace osb {
namespace {

constexpr std::uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t load(const unsigned char* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | std::uint32_t{at[3]};
}

std::string_view view(const Sha256::Digest& digest) { return {digest.data(), digest.size()}; }

}  // namespace

void Sha256::block(const unsigned char* bytes) {
  std::uint32_t w[64];
  for (int i = 0; i < 16; ++i) w[i] = load(bytes + 4 * i);
  for (int i = 16; i < 64; ++i) {
    std::uint32_t a = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    std::uint32_t b = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  auto s = state_;
  for (int i = 0; i < 64; ++i) {
    std::uint32_t mix = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
    std::uint32_t one = s[7] + mix + ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRounds[i] + w[i];
    std::uint32_t fold = std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22);
    std::uint32_t two = fold + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = {one + two, s[0], s[1], s[2], s[3] + one, s[4], s[5], s[6]};
  }
  for (std::size_t i = 0; i < 8; ++i) state_[i] += s[i];
}

void Sha256::update(std::string_view bytes) {
  while (!bytes.empty()) {
    std::size_t used = size_ % kBlock;
    std::size_t count = std::min(kBlock - used, bytes.size());
    std::copy_n(bytes.data(), count, rest_.begin() + static_cast<std::ptrdiff_t>(used));
    size_ += count;
    bytes.remove_prefix(count);
    if (used + count == kBlock) block(rest_.data());
  }
}

Sha256::Digest Sha256::finish() {
  std::uint64_t bits = size_ * 8;
  update(std::string_view("\x80", 1));
  while (size_ % kBlock != kBlock - 8) update(std::string_view("\0", 1));
  char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(bits >> (56 - 8 * i));
  update({length, sizeof length});
  Digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<char>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return to_hex(view(hash.finish()));
}

std::string hmac_sha256_hex(std::string_view key, std::initializer_list<std::string_view> parts) {
  std::array<char, Sha256::kBlock> pad{};
  Sha256 of_key;
  of_key.update(key);
  auto short_key = of_key.finish();
  if (key.size() > pad.size()) key = view(short_key);
  std::copy(key.begin(), key.end(), pad.begin());
  Sha256 inner;
  Sha256 outer;
  for (char& byte : pad) byte = static_cast<char>(byte ^ 0x36);
  inner.update({pad.data(), pad.size()});
  for (std::string_view part : parts) inner.update(part);
  for (char& byte : pad) byte = static_cast<char>(byte ^ 0x36 ^ 0x5c);
  outer.update({pad.data(), pad.size()});
  outer.update(view(inner.finish()));
  return to_hex(view(outer.finish()));
}

}  // namespace osb
