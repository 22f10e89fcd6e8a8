// URLs as registries hand them out: http or https, a host, a port, a target. No user names, no fragments.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb::image::registry {

struct Origin {
  bool tls = true;
  std::string host;  // lowercase name or address, without brackets
  std::uint16_t port = 443;
  bool operator==(const Origin&) const = default;
  std::string authority() const;  // for Host and for people: the port only where it is not the scheme's own
};

struct Url {
  Origin origin;
  std::string target;  // path and query, begins with '/'
  std::string text() const;
};

// "host", "host:port", "[::1]:port". `tls` gives the default port.
Result<Origin> parse_authority(std::string_view text, bool tls);
Result<Url> parse_url(std::string_view text);
// A Location field seen from `base`: absolute, "//host/path" or "/path".
Result<Url> follow(const Url& base, std::string_view location);

bool is_address(std::string_view host);        // a numeric one
bool is_loopback_name(std::string_view host);  // "localhost", 127.x.y.z, ::1
// The same host, its parent or a sibling below a parent of two labels or more: registries keep their token service there.
bool are_neighbours(std::string_view host, std::string_view other);

}  // namespace osb::image::registry
