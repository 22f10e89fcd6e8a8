#include "image/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <new>

#include "base/text.h"

namespace osb::image {

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  // OpenSSL fails here only for want of memory or of the algorithm itself; neither is an answer about the data.
  if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) throw std::bad_alloc();
}

void Sha256::update(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) throw std::bad_alloc();
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_DigestFinal_ex(context_.get(), digest, &size) != 1) throw std::bad_alloc();
  return to_hex({reinterpret_cast<const char*>(digest), size});
}

std::string sha256_hex(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.hex();
}

bool is_sha256_hex(std::string_view text) {
  auto hex_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 64 && std::all_of(text.begin(), text.end(), hex_digit);
}

}  // namespace osb::image
