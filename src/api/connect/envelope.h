// Messages in a stream: one byte of flags, four of length (big endian), then the message. The same for Connect, gRPC-Web and
// gRPC itself.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb::api::connect {

inline constexpr std::uint8_t kCompressed = 0x01;
inline constexpr std::uint8_t kEndOfStream = 0x02;  // Connect; from the gRPC program: the client has said all
inline constexpr std::uint8_t kTrailers = 0x80;     // gRPC-Web

struct Envelope {
  std::uint8_t flags = 0;
  std::string bytes;
};

std::string pack(std::uint8_t flags, std::string_view bytes);

// Takes bytes as they come and gives envelopes. Holds at most one message and what one read brought behind it.
class Unpacker {
 public:
  explicit Unpacker(std::size_t most) : most_(most) {}
  void feed(std::string_view bytes) { pending_ += bytes; }
  // nullopt: more bytes are needed. Errc::too_large as soon as a length says so, Errc::unsupported for a compressed message.
  Result<std::optional<Envelope>> next();
  bool empty() const { return pending_.empty(); }

 private:
  std::size_t most_;
  std::string pending_;
};

// gRPC-Web's text form: base64, padded wherever a sender flushed.
std::optional<std::string> from_text_form(std::string_view text);

}  // namespace osb::api::connect
