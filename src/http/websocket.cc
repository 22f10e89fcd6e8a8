#include "http/websocket.h"

#include <algorithm>
#include <bit>

#include "base/base64.h"
#include "base/text.h"

namespace osb::http {
namespace {

constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kMaxControl = 125;
constexpr const char* kTextIsNotUtf8 = "the text is not UTF-8";

// ---- SHA-1 and base64: the handshake proves that we speak WebSocket, it keeps no secret --------------------------

struct Sha1 {
  std::uint32_t h[5] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};

  void block(const unsigned char* bytes) {
    std::uint32_t w[80];
    for (int i = 0; i < 16; ++i)
      w[i] = static_cast<std::uint32_t>(bytes[4 * i]) << 24 | static_cast<std::uint32_t>(bytes[4 * i + 1]) << 16 |
             static_cast<std::uint32_t>(bytes[4 * i + 2]) << 8 | bytes[4 * i + 3];
    for (int i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    std::uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 80; ++i) {
      std::uint32_t f = 0, k = 0;
      if (i < 20)
        f = (b & c) | (~b & d), k = 0x5A827999;
      else if (i < 40)
        f = b ^ c ^ d, k = 0x6ED9EBA1;
      else if (i < 60)
        f = (b & c) | (b & d) | (c & d), k = 0x8F1BBCDC;
      else
        f = b ^ c ^ d, k = 0xCA62C1D6;
      std::uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
      e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
  }
};

std::string sha1(std::string text) {
  std::uint64_t bits = text.size() * 8;
  text += '\x80';
  while (text.size() % 64 != 56) text += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) text += static_cast<char>(bits >> shift & 0xFF);
  Sha1 sum;
  for (std::size_t i = 0; i < text.size(); i += 64) sum.block(reinterpret_cast<const unsigned char*>(text.data() + i));
  std::string out;
  for (std::uint32_t word : sum.h)
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(word >> shift & 0xFF);
  return out;
}

// base64 of 16 bytes: 22 digits, the last of which carries two bits, and two signs of padding.
bool is_key(std::string_view key) {
  return key.size() == 24 && key.ends_with("==") &&
         std::all_of(key.begin(), key.begin() + 22, [](char c) { return kBase64.find(c) != kBase64.npos; }) &&
         std::string_view("AQgw").find(key[21]) != std::string_view::npos;
}

bool has_token(const Headers& headers, std::string_view name, std::string_view token) {
  for (const auto& field : headers.fields()) {
    if (!iequals(field.name, name)) continue;
    for (auto part : split(field.value, ','))
      if (iequals(trim(part), token)) return true;
  }
  return false;
}

Response refusal(int status, const char* message) {
  return Response::json(status, cat(R"({"code":"INVALID_REQUEST_BODY","message":")", message, "\"}"));
}

bool is_control(WsOpcode opcode) { return opcode >= WsOpcode::close; }

bool may_close_with(unsigned code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

}  // namespace

std::string websocket_accept(std::string_view key) { return base64(sha1(cat(key, kGuid))); }

std::optional<Response> refuse_websocket(const Request& request) {
  const Headers& headers = request.headers;
  if (request.method != "GET" || !has_token(headers, "Connection", "Upgrade") || !has_token(headers, "Upgrade", "websocket"))
    return refusal(400, "this path wants a WebSocket handshake (Connection: Upgrade, Upgrade: websocket)");
  if (headers.count("Sec-WebSocket-Version") != 1 || headers.get("Sec-WebSocket-Version") != "13") {
    auto response = refusal(426, "this server speaks version 13 of WebSocket");
    response.headers.add("Sec-WebSocket-Version", "13");
    return response;
  }
  if (headers.count("Sec-WebSocket-Key") != 1 || !is_key(headers.get("Sec-WebSocket-Key")))
    return refusal(400, "Sec-WebSocket-Key must be 16 bytes in base64");
  return std::nullopt;
}

Headers websocket_headers(const Request& request) {
  Headers headers;
  headers.add("Upgrade", "websocket");
  headers.add("Sec-WebSocket-Accept", websocket_accept(request.headers.get("Sec-WebSocket-Key")));
  return headers;
}

// ---- from the client --------------------------------------------------------------------------------------

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    auto byte = static_cast<unsigned char>(text[i++]);
    if (byte < 0x80) continue;
    // How many bytes follow, and what the first of them may be: no overlong form, no surrogate, nothing past U+10FFFF.
    int more = byte >= 0xC2 && byte <= 0xDF ? 1 : byte >= 0xE0 && byte <= 0xEF ? 2 : byte >= 0xF0 && byte <= 0xF4 ? 3 : 0;
    unsigned low = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    unsigned high = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    if (more == 0) return false;
    for (; more > 0; --more, low = 0x80, high = 0xBF) {
      auto next = i < text.size() ? static_cast<unsigned char>(text[i++]) : 0u;
      if (next < low || next > high) return false;
    }
  }
  return true;
}

void WsDecoder::feed(std::string_view bytes) {
  input_.erase(0, at_);
  at_ = 0;
  input_ += bytes;
}

Error WsDecoder::fail(std::uint16_t code, const char* why) {
  close_code_ = code;
  failure_ = why;
  return Error(code == kWsTooBig ? Errc::too_large : Errc::malformed, why);
}

const char* WsDecoder::check_head(unsigned first, unsigned second, std::uint64_t size) {
  auto opcode = static_cast<WsOpcode>(first & 0x0F);
  bool known = opcode <= WsOpcode::binary || (opcode >= WsOpcode::close && opcode <= WsOpcode::pong);
  if ((first & 0x70) != 0) return "a reserved bit is set";
  if (!known) return "unknown opcode";
  if ((second & 0x80) == 0) return "a client's frame must be masked";
  if (is_control(opcode)) return (first & 0x80) == 0 || size > kMaxControl ? "a control frame is whole and at most 125 bytes" : nullptr;
  bool goes_on = kind_ != WsOpcode::continuation;
  if (goes_on != (opcode == WsOpcode::continuation)) return goes_on ? "a message begins inside another" : "nothing is there to continue";
  return nullptr;
}

// True when a whole head was read; otherwise bytes are missing or close_code_ is set.
bool WsDecoder::read_head() {
  auto rest = std::string_view(input_).substr(at_);
  if (rest.size() < 2) return false;
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  std::size_t wide = (byte(1) & 0x7F) == 126 ? 2 : (byte(1) & 0x7F) == 127 ? 8 : 0;
  std::uint64_t size = byte(1) & 0x7F;
  // Two bytes already tell most of what may be wrong: no need to wait for the rest.
  if (const char* why = check_head(byte(0), byte(1), size)) {
    (void)fail(kWsProtocolError, why);
    return false;
  }
  if (rest.size() < 2 + wide + 4) return false;
  if (wide > 0) size = 0;
  for (std::size_t i = 0; i < wide; ++i) size = size << 8 | byte(2 + i);
  if ((wide == 2 && size < 126) || (wide == 8 && (size < 65536 || size >> 63 != 0)))
    return (void)fail(kWsProtocolError, "the length is not written in its shortest form"), false;
  opcode_ = static_cast<WsOpcode>(byte(0) & 0x0F);
  if (!is_control(opcode_) && size > limit_ - message_.size()) return (void)fail(kWsTooBig, "the message is too big"), false;
  final_ = (byte(0) & 0x80) != 0;
  if (opcode_ == WsOpcode::text || opcode_ == WsOpcode::binary) kind_ = opcode_;
  for (std::size_t i = 0; i < 4; ++i) mask_[i] = byte(2 + wide + i);
  mask_at_ = 0;
  left_ = size;
  at_ += 2 + wide + 4;
  return in_payload_ = true;
}

void WsDecoder::take_payload() {
  auto part = std::string_view(input_).substr(at_, static_cast<std::size_t>(std::min<std::uint64_t>(left_, input_.size() - at_)));
  std::string& into = is_control(opcode_) ? control_ : message_;
  std::size_t from = into.size();
  into += part;
  for (std::size_t i = from; i < into.size(); ++i) into[i] = static_cast<char>(into[i] ^ mask_[mask_at_++ & 3]);
  at_ += part.size();
  left_ -= part.size();
}

const char* WsDecoder::check_message(const WsMessage& message) {
  if (message.opcode == WsOpcode::text && !is_utf8(message.payload)) return kTextIsNotUtf8;
  if (message.opcode != WsOpcode::close || message.payload.empty()) return nullptr;
  if (message.payload.size() == 1) return "a close code is two bytes";
  unsigned code =
      static_cast<unsigned>(static_cast<unsigned char>(message.payload[0])) << 8 | static_cast<unsigned char>(message.payload[1]);
  if (!may_close_with(code)) return "no such close code";
  return is_utf8(std::string_view(message.payload).substr(2)) ? nullptr : kTextIsNotUtf8;
}

Result<std::optional<WsMessage>> WsDecoder::next() {
  for (;;) {
    if (failure_) return fail(close_code_, failure_);
    if (!in_payload_ && !read_head()) {
      if (failure_) continue;
      return std::optional<WsMessage>();
    }
    take_payload();
    if (left_ > 0) return std::optional<WsMessage>();
    in_payload_ = false;
    if (!final_) continue;
    WsMessage message{is_control(opcode_) ? opcode_ : kind_, std::move(is_control(opcode_) ? control_ : message_)};
    (is_control(opcode_) ? control_ : message_).clear();
    if (!is_control(opcode_)) kind_ = WsOpcode::continuation;
    if (const char* why = check_message(message)) return fail(why == kTextIsNotUtf8 ? kWsNotUtf8 : kWsProtocolError, why);
    return std::optional(std::move(message));
  }
}

// ---- to the client ----------------------------------------------------------------------------------------

std::size_t put_ws_head(char* at, WsOpcode opcode, std::size_t size) {
  std::size_t wide = size < 126 ? 0 : size < 65536 ? 2 : 8;
  at[0] = static_cast<char>(0x80 | static_cast<unsigned>(opcode));
  at[1] = static_cast<char>(wide == 0 ? size : wide == 2 ? 126 : 127);
  for (std::size_t i = 0; i < wide; ++i) at[2 + i] = static_cast<char>(static_cast<std::uint64_t>(size) >> (8 * (wide - 1 - i)) & 0xFF);
  return 2 + wide;
}

std::string ws_frame(WsOpcode opcode, std::string_view payload) {
  char head[kWsHead];
  std::size_t size = put_ws_head(head, opcode, payload.size());
  std::string frame(head, size);
  return frame += payload;
}

std::string ws_close(std::uint16_t code, std::string_view reason) {
  std::string payload{static_cast<char>(code >> 8), static_cast<char>(code & 0xFF)};
  payload += reason.substr(0, kMaxControl - 2);
  return ws_frame(WsOpcode::close, payload);
}

}  // namespace osb::http
