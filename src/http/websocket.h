// The server side of WebSocket (RFC 6455), without extensions and sub-protocols.
//
// WsDecoder turns the bytes of a hostile client into whole messages and holds one message of bounded size at most; it
// does no I/O. A client is held to every rule of the framing: the first frame that breaks one ends the conversation with
// the close code the decoder names. Frames to the client are made by ws_frame() and its kin.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/http.h"

namespace osb::http {

inline constexpr std::size_t kWsMessageBytes = 1024 * 1024;
inline constexpr std::size_t kWsHead = 10;  // the most that put_ws_head() writes

enum class WsOpcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

inline constexpr std::uint16_t kWsNormal = 1000;
inline constexpr std::uint16_t kWsProtocolError = 1002;
inline constexpr std::uint16_t kWsNotUtf8 = 1007;
inline constexpr std::uint16_t kWsTooBig = 1009;
inline constexpr std::uint16_t kWsInternal = 1011;

// ---- handshake ------------------------------------------------------------------------------------------

// What to answer instead of 101 when `request` does not ask for a WebSocket as the RFC wants it: 400, or 426 for another version.
std::optional<Response> refuse_websocket(const Request& request);
// The fields of the 101, for a request that is not refused.
Headers websocket_headers(const Request& request);
// Sec-WebSocket-Accept for a Sec-WebSocket-Key.
std::string websocket_accept(std::string_view key);

// ---- from the client --------------------------------------------------------------------------------------

struct WsMessage {
  WsOpcode opcode{};    // text, binary, close, ping or pong; fragments are put together
  std::string payload;  // text and the reason of a close are valid UTF-8
};

class WsDecoder {
 public:
  explicit WsDecoder(std::size_t message_bytes = kWsMessageBytes) : limit_(message_bytes) {}
  void feed(std::string_view bytes);
  // nullopt: bytes are missing. An error stays; close_code() says what to tell the client.
  Result<std::optional<WsMessage>> next();
  std::uint16_t close_code() const { return close_code_; }

 private:
  bool read_head();
  const char* check_head(unsigned first, unsigned second, std::uint64_t size);
  void take_payload();
  const char* check_message(const WsMessage& message);
  Error fail(std::uint16_t code, const char* why);

  std::size_t limit_;
  std::string input_;  // fed and not used yet; all of it is used by next() until it gives nullopt
  std::size_t at_ = 0;
  std::string message_;  // of the fragments so far
  std::string control_;
  WsOpcode kind_ = WsOpcode::continuation;  // of message_; continuation: none is under way
  bool in_payload_ = false;
  bool final_ = false;
  WsOpcode opcode_{};
  std::uint64_t left_ = 0;  // bytes of the frame's payload still to come
  unsigned char mask_[4] = {};
  unsigned mask_at_ = 0;
  const char* failure_ = nullptr;
  std::uint16_t close_code_ = 0;
};

bool is_utf8(std::string_view text);

// ---- to the client ----------------------------------------------------------------------------------------

// Writes the head of a whole, unmasked frame; returns its size.
std::size_t put_ws_head(char* at, WsOpcode opcode, std::size_t payload_size);
std::string ws_frame(WsOpcode opcode, std::string_view payload);
std::string ws_close(std::uint16_t code, std::string_view reason);

}  // namespace osb::http
