#include "cli/address.h"

#include "base/text.h"

namespace osb::cli {
namespace {

constexpr std::uint16_t kDefaultPort = 8080;

Error bad_address(std::string_view text) {
  return Error(Errc::invalid_argument, cat("'", text, "' is not an address of a daemon"))
      .with_hint("write unix:///run/opensandbox/default/api.sock or http://127.0.0.1:8080");
}

bool drop_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

Result<Address> parse_unix(std::string_view path, std::string_view whole) {
  if (!path.starts_with('/') || path.size() > 107 || path.contains('\0')) return bad_address(whole);
  return Address{true, std::string(path), 0};
}

Result<Address> parse_tcp(std::string_view rest, std::string_view whole) {
  if (rest.ends_with('/')) rest.remove_suffix(1);
  std::string_view host = rest, port;
  if (drop_prefix(host, "[")) {
    auto close = host.find(']');
    if (close == host.npos) return bad_address(whole);
    port = host.substr(close + 1);
    host = host.substr(0, close);
  } else if (auto colon = host.rfind(':'); colon != host.npos) {
    port = host.substr(colon);
    host = host.substr(0, colon);
  }
  if (host.empty() || host.find_first_of("/@?# ") != host.npos) return bad_address(whole);
  if (port.empty()) return Address{false, std::string(host), kDefaultPort};
  auto number = drop_prefix(port, ":") ? parse_int<std::uint16_t>(port) : std::nullopt;
  if (!number || *number == 0) return bad_address(whole);
  return Address{false, std::string(host), *number};
}

}  // namespace

std::string Address::text() const { return is_unix ? cat("unix://", host) : cat("http://", authority()); }

std::string Address::authority() const {
  if (is_unix) return "localhost";
  return host.contains(':') ? cat("[", host, "]:", port) : cat(host, ":", port);
}

Result<Address> parse_address(std::string_view text) {
  std::string_view rest = text;
  if (drop_prefix(rest, "unix://") || drop_prefix(rest, "unix:") || rest.starts_with('/')) return parse_unix(rest, text);
  if (rest.starts_with("https://"))
    return Error(Errc::unsupported, "this command line speaks plain HTTP, not TLS")
        .with_hint("use a unix socket, http:// to localhost, or an ssh tunnel: ssh -L 8080:127.0.0.1:8080 HOST");
  if (!drop_prefix(rest, "http://")) drop_prefix(rest, "tcp://");
  return parse_tcp(rest, text);
}

}  // namespace osb::cli
