#include "proxy/tokens.h"

// The plain functions: the library's newer ones look the algorithm up, and allocate, for every call.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <array>

#include "base/text.h"

namespace osb::proxy {
namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

Digest finish(SHA256_CTX context) {
  Digest digest;
  ::SHA256_Final(digest.data(), &context);
  return digest;
}

}  // namespace

// HMAC-SHA256 (RFC 2104) with its two paddings already taken in.
struct Tokens::Keyed {
  SHA256_CTX inner, outer;

  explicit Keyed(std::string_view secret) {
    std::array<unsigned char, SHA256_CBLOCK> pad{};
    ::SHA256_Init(&inner);
    ::SHA256_Init(&outer);
    Digest hashed;
    if (secret.size() > pad.size()) {
      SHA256_CTX context = inner;
      ::SHA256_Update(&context, secret.data(), secret.size());
      hashed = finish(context);
      secret = {reinterpret_cast<const char*>(hashed.data()), hashed.size()};
    }
    for (std::size_t i = 0; i < pad.size(); ++i) pad[i] = (i < secret.size() ? static_cast<unsigned char>(secret[i]) : 0) ^ 0x36;
    ::SHA256_Update(&inner, pad.data(), pad.size());
    for (unsigned char& byte : pad) byte ^= 0x36 ^ 0x5c;
    ::SHA256_Update(&outer, pad.data(), pad.size());
  }
};

Tokens::Tokens(std::string_view secret) : keyed_(std::make_shared<Keyed>(secret)) {}

std::string Tokens::derive(std::string_view purpose, const SandboxId& id) const {
  SHA256_CTX inner = keyed_->inner;
  SHA256_CTX outer = keyed_->outer;
  ::SHA256_Update(&inner, purpose.data(), purpose.size());
  ::SHA256_Update(&inner, id.text().data(), id.text().size());
  Digest digest = finish(inner);
  ::SHA256_Update(&outer, digest.data(), digest.size());
  digest = finish(outer);
  return to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace osb::proxy
