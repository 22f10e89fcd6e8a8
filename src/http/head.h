// Message heads: from gated bytes to fields and one certain answer to "where does the body end?".
//
// Sans-I/O: callers hand over exactly the bytes the gate let through. Framing is worked out twice, by these rules
// and by the parser of Beast; a message about which the two disagree is refused.
#pragma once
#include <cstdint>
#include <string_view>

#include "http/gate.h"
#include "http/http.h"

namespace osb::http {

struct Framing {
  enum class Kind { none, length, chunked, until_close };
  Kind kind = Kind::none;
  std::uint64_t length = 0;
};

// What the connection needs to know about a message beyond its fields.
struct MessageInfo {
  int version = 11;
  bool keep_alive = false;
  bool expect_continue = false;
  Framing framing;
};

GateLimits gate_limits(const Limits& limits);
inline constexpr GateLimits kResponseGate{64 * 1024, 256, 8 * 1024};

// Fills method, target, path, query, headers and request_id. On refusal `request` keeps the request_id found so far.
Refusal parse_request_head(std::string_view head, const Limits& limits, Request& request, MessageInfo& info);
// `method` is that of the request: it decides whether a body can follow.
Refusal parse_response_head(std::string_view head, std::string_view method, ClientConnection::Head& response, MessageInfo& info);

std::string new_request_id();  // 32 lowercase hex digits

}  // namespace osb::http
