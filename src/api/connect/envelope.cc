#include "api/connect/envelope.h"

#include <algorithm>

#include "api/rpc/json_form.h"
#include "base/text.h"

namespace osb::api::connect {
namespace {

constexpr std::size_t kHead = 5;

std::uint32_t length_of(std::string_view head) {
  std::uint32_t length = 0;
  for (std::size_t i = 1; i < kHead; ++i) length = length << 8 | static_cast<std::uint8_t>(head[i]);
  return length;
}

}  // namespace

std::string pack(std::uint8_t flags, std::string_view bytes) {
  std::string out;
  out.reserve(kHead + bytes.size());
  out += static_cast<char>(flags);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(bytes.size() >> shift & 0xFF);
  out += bytes;
  return out;
}

Result<std::optional<Envelope>> Unpacker::next() {
  if (pending_.size() < kHead) return std::optional<Envelope>();
  auto flags = static_cast<std::uint8_t>(pending_[0]);
  auto length = length_of(pending_);
  if (length > most_) return Error(Errc::too_large, cat("A message has at most ", most_, " bytes.")).with_code("GENERAL::TOO_LARGE");
  if ((flags & kCompressed) != 0) return Error(Errc::unsupported, "Compressed messages are not taken.").with_code("GENERAL::COMPRESSED");
  if ((flags & ~kEndOfStream) != 0)
    return Error(Errc::malformed, "A message begins with flags that nobody knows.").with_code("GENERAL::MALFORMED");
  if (pending_.size() - kHead < length) return std::optional<Envelope>();
  Envelope envelope{flags, pending_.substr(kHead, length)};
  pending_.erase(0, kHead + length);
  return std::optional(std::move(envelope));
}

std::optional<std::string> from_text_form(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    auto pad = text.find('=');
    auto end = pad == std::string_view::npos ? text.size() : std::min(text.size(), text.find_first_not_of('=', pad));
    auto part = text.substr(0, end);
    if (part.size() % 4 != 0) return std::nullopt;
    auto bytes = rpc::from_base64(part);
    if (!bytes) return std::nullopt;
    out += *bytes;
    text.remove_prefix(end);
  }
  return out;
}

}  // namespace osb::api::connect
