#include "api/auth.h"

// The plain functions: the one-shot call looks the algorithm up, and allocates, for every request.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "base/text.h"

namespace osb::api {
namespace {

constexpr std::string_view kKeyHeader = "OPEN-SANDBOX-API-KEY";
constexpr std::string_view kKeyAlias = "X-API-Key";

Error missing_key() {
  return Error(Errc::unauthenticated, "The API key is missing.")
      .with_code("MISSING_API_KEY")
      .with_hint("Send it in the header OPEN-SANDBOX-API-KEY.");
}

Error wrong_key() { return Error(Errc::unauthenticated, "The API key is not valid.").with_code("INVALID_API_KEY"); }

}  // namespace

std::string sha256(std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256_CTX context;
  ::SHA256_Init(&context);
  ::SHA256_Update(&context, bytes.data(), bytes.size());
  ::SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &context);
  return digest;
}

Keys Keys::insecure() {
  Keys keys;
  keys.insecure_ = true;
  return keys;
}

void Keys::add_hash(std::string name, std::string raw_sha256, bool sees_all) {
  keys_.push_back({std::move(name), std::move(raw_sha256), sees_all});
}

Result<Caller> Keys::identify(const http::Headers& headers, const std::string& request_id) const {
  if (insecure_) return Caller{"anonymous", true, request_id};
  auto name = headers.has(kKeyHeader) ? kKeyHeader : kKeyAlias;
  if (headers.count(name) > 1) return wrong_key();
  auto given = headers.get(name);
  if (given.empty()) return missing_key();
  auto hash = sha256(given);
  // Every key is compared, so that the time says nothing about which one nearly matched.
  const Key* found = nullptr;
  for (const Key& key : keys_)
    if (constant_time_equals(key.hash, hash)) found = &key;
  if (!found) return wrong_key();
  return Caller{found->name, found->sees_all, request_id};
}

}  // namespace osb::api
