// Feeds arbitrary bytes to everything a request passes before a handler sees it, whole and in pieces, and checks what
// the layer promises: how bytes are cut changes nothing, and an accepted request has one certain end.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "http/body_decoder.h"
#include "http/gate.h"
#include "http/head.h"
#include "http/router.h"

namespace {

using namespace osb::http;

void require(bool promise) {
  if (!promise) std::abort();
}

struct Outcome {
  int status = 0;
  std::size_t head = 0;
  std::string body;
  std::size_t consumed = 0;
  bool done = false;
  bool operator==(const Outcome&) const = default;
};

void check_request(const Request& request, const MessageInfo& info) {
  require(!request.target.empty() && request.target[0] == '/');
  require(is_token(request.method));
  require(request.headers.count("Host") <= 1 && request.headers.count("Content-Length") <= 1);
  bool chunked = request.headers.has("Transfer-Encoding");
  require(!(chunked && request.headers.has("Content-Length")));
  require(chunked == (info.framing.kind == Framing::Kind::chunked));
  for (const auto& field : request.headers.fields())
    for (char c : field.value) require(c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
}

void decode_body(std::string_view rest, const Framing& framing, std::size_t step, Outcome& out) {
  BodyDecoder decoder(framing);
  char room[64];
  while (out.consumed < rest.size() && !decoder.done() && !decoder.failed()) {
    auto result = decoder.decode(rest.substr(out.consumed, step), room, sizeof room);
    require(result.produced <= result.consumed);
    require(result.consumed > 0);
    out.body.append(room, result.produced);
    out.consumed += result.consumed;
  }
  out.done = decoder.done();
  if (decoder.failed()) out = {.status = 400, .head = out.head, .body = {}, .consumed = 0, .done = false};
}

Outcome receive(std::string_view bytes, std::size_t step) {
  Limits limits;
  limits.header_bytes = 4096;
  limits.target_bytes = 1024;
  Gate gate(gate_limits(limits));
  Outcome out;
  std::size_t have = 0;
  while (!gate.done() && have < bytes.size()) {
    have = std::min(bytes.size(), have + step);
    auto refusal = gate.scan(bytes.substr(0, have));
    if (refusal) return {.status = refusal.status, .head = 0, .body = {}, .consumed = 0, .done = false};
  }
  if (!gate.done()) return out;
  Request request;
  MessageInfo info;
  out.head = gate.head_bytes();
  out.status = parse_request_head(bytes.substr(0, out.head), limits, request, info).status;
  if (out.status != 0) return out;
  check_request(request, info);
  decode_body(bytes.substr(out.head), info.framing, step, out);
  return out;
}

void route(std::string_view path) {
  static const Router router = [] {
    Router made;
    for (auto pattern : {"/", "/a", "/a/{x}", "/a/{x}/b", "/a/{x}/{rest*}", "/{y}/c"}) made.add("GET", pattern, {});
    return made;
  }();
  auto match = router.find("GET", path);
  for (const auto& [name, value] : match.params)
    require(value.find('\0') == std::string::npos || path.find('\0') != std::string_view::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto whole = receive(bytes, bytes.size() + 1);
  for (std::size_t step : {1u, 7u}) {
    auto pieces = receive(bytes, step);
    // One limit may be met before another depending on the cut; that it is refused may not depend on it.
    bool refused = whole.status != 0 && pieces.status != 0;
    require(refused || pieces == whole);
  }
  route(bytes);
  if (auto query = parse_query(bytes)) require(query->size() <= size);
  if (auto text = percent_decode(bytes, false)) require(text->size() <= size);
  require(percent_decode(percent_encode(bytes), false).has_value() == (bytes.find('\0') == std::string_view::npos));
  return 0;
}
