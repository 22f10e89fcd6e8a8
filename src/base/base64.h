// Base64 with padding (RFC 4648, section 4).
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace osb {

void append_base64(std::string& out, std::string_view bytes);
std::string base64(std::string_view bytes);
// nullopt for anything but whole groups of the alphabet with the padding at the end.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace osb
