// Is this file of the host fit for every sandbox to read?
#pragma once
#include <string_view>

namespace osb::image {

// No private key, and no line that sets a password, a secret or a token (comments aside).
bool is_free_of_secrets(std::string_view content);
// PEM certificates, or a Java key store of certificates alone. Everything else is not.
bool is_public_certificates(std::string_view content);

}  // namespace osb::image
