// Where a daemon listens, as people write it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb::cli {

struct Address {
  bool is_unix = true;
  std::string host;  // a path when is_unix
  std::uint16_t port = 0;
  std::string text() const;       // "unix:///run/x.sock", "http://127.0.0.1:8080"
  std::string authority() const;  // for the Host header
  auto operator<=>(const Address&) const = default;
};

// "unix:///path", "/path", "http://host[:port]", "host:port", "[::1]:8080". TLS is not spoken here: https is refused.
Result<Address> parse_address(std::string_view text);

}  // namespace osb::cli
