// Feeds arbitrary bytes to what a client does with the answer of a hostile server.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "http/body_decoder.h"
#include "http/gate.h"
#include "http/head.h"

namespace {

using namespace osb::http;

void require(bool promise) {
  if (!promise) std::abort();
}

struct Outcome {
  int status = 0;
  bool refused = false;
  std::string body;
  std::size_t consumed = 0;
  bool done = false;
  bool operator==(const Outcome&) const = default;
};

void check_framing(const ClientConnection::Head& head, const MessageInfo& info, std::string_view method) {
  require(head.status >= 100 && head.status <= 599);
  require(!(head.headers.has("Content-Length") && head.headers.has("Transfer-Encoding")));
  bool bodiless = head.status < 200 || head.status == 204 || head.status == 304 || method == "HEAD";
  require(bodiless == (info.framing.kind == Framing::Kind::none));
  if (info.framing.kind == Framing::Kind::until_close) require(!info.keep_alive);
}

// Whatever arrives in place of the body, decoding in place reads no byte twice and loses none.
void decode_body(std::string_view rest, const Framing& framing, std::size_t step, Outcome& out) {
  BodyDecoder decoder(framing);
  while (out.consumed < rest.size() && !decoder.done() && !decoder.failed()) {
    std::string piece(rest.substr(out.consumed, step));
    auto result = decoder.decode(piece, piece.data(), piece.size());
    require(result.consumed > 0 && result.produced <= result.consumed);
    out.body.append(piece, 0, result.produced);
    out.consumed += result.consumed;
  }
  if (out.consumed == rest.size()) decoder.end_of_stream();
  out.done = decoder.done();
  if (decoder.failed()) out = {.status = out.status, .refused = true, .body = {}, .consumed = 0, .done = false};
}

Outcome receive(std::string_view bytes, std::string_view method, std::size_t step) {
  Gate gate(GateLimits{4096, 64, 512});
  Outcome out;
  std::size_t have = 0;
  while (!gate.done() && have < bytes.size()) {
    have = std::min(bytes.size(), have + step);
    out.refused = static_cast<bool>(gate.scan(bytes.substr(0, have)));
    if (out.refused) return out;
  }
  if (!gate.done()) return out;
  ClientConnection::Head head;
  MessageInfo info;
  out.refused = static_cast<bool>(parse_response_head(bytes.substr(0, gate.head_bytes()), method, head, info));
  if (out.refused) return out;
  check_framing(head, info, method);
  out.status = head.status;
  decode_body(bytes.substr(gate.head_bytes()), info.framing, step, out);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (std::string_view method : {"GET", "HEAD"}) {
    auto whole = receive(bytes, method, bytes.size() + 1);
    for (std::size_t step : {1u, 5u}) require(receive(bytes, method, step) == whole);
  }
  return 0;
}
