// Feeds arbitrary bytes to the WebSocket decoder, whole and in pieces: how they are cut changes nothing, what comes out
// keeps the bounds and rules the decoder promises, and what we write is read back as it was.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "http/websocket.h"

namespace {

using namespace osb::http;

constexpr std::size_t kLimit = 512;

void require(bool promise) {
  if (!promise) std::abort();
}

struct Heard {
  std::vector<std::pair<WsOpcode, std::string>> messages;
  std::uint16_t failure = 0;
  bool operator==(const Heard&) const = default;
};

void check(const WsMessage& message) {
  bool control = message.opcode >= WsOpcode::close;
  require(message.opcode != WsOpcode::continuation && message.payload.size() <= (control ? 125 : kLimit));
  if (message.opcode == WsOpcode::text) require(is_utf8(message.payload));
}

Heard hear(std::string_view bytes, std::size_t step) {
  WsDecoder decoder(kLimit);
  Heard heard;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    decoder.feed(bytes.substr(at, step));
    for (;;) {
      auto message = decoder.next();
      if (!message) {
        heard.failure = decoder.close_code();
        require(heard.failure == kWsProtocolError || heard.failure == kWsNotUtf8 || heard.failure == kWsTooBig);
        return heard;
      }
      if (!*message) break;
      check(**message);
      heard.messages.emplace_back((*message)->opcode, (*message)->payload);
    }
  }
  return heard;
}

// Our own frame with a mask of zeros is a client's frame.
void check_round_trip(std::string_view bytes) {
  auto payload = bytes.substr(0, kLimit);
  auto frame = ws_frame(WsOpcode::binary, payload);
  std::size_t head = frame.size() - payload.size();
  frame[1] = static_cast<char>(frame[1] | 0x80);
  frame.insert(head, 4, '\0');
  auto heard = hear(frame, 5);
  require(heard.failure == 0 && heard.messages.size() == 1 && heard.messages[0].second == payload);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto whole = hear(bytes, size + 1);
  require(hear(bytes, 1) == whole && hear(bytes, 7) == whole);
  check_round_trip(bytes);
  return 0;
}
