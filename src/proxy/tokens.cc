#include "proxy/tokens.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/text.h"

namespace osb::proxy {

std::string Tokens::derive(std::string_view purpose, const SandboxId& id) const {
  std::string message = cat(purpose, id.text());
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  ::HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()), reinterpret_cast<const unsigned char*>(message.data()),
         message.size(), digest, &size);
  return to_hex({reinterpret_cast<const char*>(digest), size});
}

}  // namespace osb::proxy
