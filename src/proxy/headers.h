// Which header fields cross the proxy. Credentials of ours never reach a sandbox; framing is never copied.
#pragma once
#include <cstdint>
#include <string>

#include "http/http.h"

namespace osb::proxy {

// Request fields for the service behind `port`: without hop-by-hop fields, those named in Connection, Host, API keys and
// tokens (and, for execd, Authorization and Cookie); with X-Forwarded-* and the request id. An upgrade keeps its two fields.
http::Headers request_headers(const http::Request& request, std::uint16_t port, bool upgrade);

// Response fields for the client: without hop-by-hop fields and the backend's own request id.
http::Headers response_headers(const http::Headers& from);

bool wants_upgrade(const http::Headers& headers);
bool has_body(const http::Request& request);  // a length other than 0, or chunked

// "1.2.3.4:4711" -> "1.2.3.4", "[::1]:80" -> "::1", "unix" -> "unix".
std::string peer_address(const std::string& peer);

}  // namespace osb::proxy
