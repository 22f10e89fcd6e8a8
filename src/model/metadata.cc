#include "model/metadata.h"

#include <algorithm>

#include "base/text.h"
#include "model/json.h"

namespace osb {
namespace {

constexpr std::size_t kMaxName = 63;
constexpr std::size_t kMaxPrefix = 253;
constexpr std::string_view kReserved = "opensandbox.io";

bool is_lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alnum(char c) { return is_lower_alnum(c) || (c >= 'A' && c <= 'Z'); }

bool is_label_text(std::string_view text) {
  if (text.empty() || text.size() > kMaxName || !is_alnum(text.front()) || !is_alnum(text.back())) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_dns_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxPrefix) return false;
  for (auto part : split(text, '.')) {
    if (part.empty() || part.size() > kMaxName || !is_lower_alnum(part.front()) || !is_lower_alnum(part.back())) return false;
    if (!std::all_of(part.begin(), part.end(), [](char c) { return is_lower_alnum(c) || c == '-'; })) return false;
  }
  return true;
}

// Keys come from clients; a message shows at most this much of one.
std::string shown(std::string_view text) { return json_string(text.substr(0, 80)); }

Error bad_label(std::string what, std::string_view key) {
  return Error(Errc::invalid_argument, std::move(what))
      .with_code("SANDBOX::INVALID_METADATA_LABEL")
      .at(cat("metadata.", key.substr(0, 80)));
}

}  // namespace

Result<> check_metadata_key(std::string_view key) {
  auto slash = key.find('/');
  if (slash != std::string_view::npos) {
    auto prefix = key.substr(0, slash);
    if (!is_dns_name(prefix))
      return bad_label(cat("metadata key ", shown(key), ": the part before '/' is not a DNS name of at most 253 characters"), key);
    if (prefix == kReserved) return bad_label(cat("metadata key ", shown(key), ": the prefix opensandbox.io/ is reserved"), key);
    key.remove_prefix(slash + 1);
  }
  if (!is_label_text(key))
    return bad_label(cat("metadata key ", shown(key), ": 1 to 63 of letters, digits, '-', '_', '.', with a letter or digit at both ends"),
                     key);
  return Ok{};
}

Result<> check_metadata_value(std::string_view key, std::string_view value) {
  if (value.empty() || is_label_text(value)) return Ok{};
  return bad_label(
      cat("metadata value of ", shown(key), ": at most 63 of letters, digits, '-', '_', '.', with a letter or digit at both ends"), key);
}

Result<MetadataPatch> parse_metadata_patch(std::string_view body) {
  TRY(auto object, parse_json_object(body));
  MetadataPatch patch;
  for (const auto& [name, value] : object) {
    std::string key(name);
    if (auto ok = check_metadata_key(key); !ok) return std::move(ok).error().with_code("INVALID_METADATA_LABEL");
    if (value.is_null()) {
      patch[key] = std::nullopt;
      continue;
    }
    if (!value.is_string())
      return Error(Errc::malformed, cat("metadata value of ", shown(key), " is neither a string nor null")).at(cat("metadata.", key));
    std::string text(value.get_string());
    if (auto ok = check_metadata_value(key, text); !ok) return std::move(ok).error().with_code("INVALID_METADATA_LABEL");
    patch[key] = std::move(text);
  }
  return patch;
}

}  // namespace osb
