// Heads on their way out. A field that could break the framing of a message is refused, never repaired.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/http.h"

namespace osb::http {

struct ResponseHead {
  int status = 200;
  const Headers& headers;  // Content-Length, Transfer-Encoding, Connection, Keep-Alive and X-Request-ID in it are ignored
  std::string_view request_id;
  std::optional<std::uint64_t> length;  // Content-Length
  bool chunked = false;
  bool close = false;
  bool upgrade = false;  // 101: Connection: Upgrade
};

// False, with nothing appended, when the status or a header cannot be sent.
bool append_head(std::string& out, const ResponseHead& head);

struct RequestHead {
  std::string_view method;
  std::string_view target;
  std::string_view default_host;
  const Headers& headers;  // one Host in it wins over the default; framing fields are ignored, Connection and Upgrade are kept
  std::optional<std::uint64_t> length;
  bool chunked = false;
};
bool append_head(std::string& out, const RequestHead& head);

// No control character except tab: neither a second line nor a terminal command fits in.
bool is_field_value(std::string_view value);
// Appends "<hex size>CRLF", what stands in front of a chunk.
void append_chunk_size(std::string& out, std::size_t size);
std::string error_json(std::string_view code, std::string_view message);

}  // namespace osb::http
