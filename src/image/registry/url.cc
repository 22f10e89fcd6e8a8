#include "image/registry/url.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/text.h"

namespace osb::image::registry {
namespace {

constexpr std::size_t kMaxUrl = 8 * 1024;

Error bad(std::string_view what) { return Error(Errc::invalid_argument, std::string(what)); }

bool is_host_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_'; }

bool is_host(std::string_view host) {
  if (host.empty() || host.size() > 253 || host.front() == '-' || host.front() == '.') return false;
  return std::all_of(host.begin(), host.end(), is_host_char);
}

std::string_view parent_of(std::string_view host) {
  std::size_t dot = host.find('.');
  std::string_view parent = dot == host.npos ? std::string_view() : host.substr(dot + 1);
  return parent.find('.') == parent.npos ? std::string_view() : parent;
}

bool is_below(std::string_view host, std::string_view parent) {
  return !parent.empty() && host.size() > parent.size() && host.ends_with(parent) && host[host.size() - parent.size() - 1] == '.';
}

}  // namespace

bool is_address(std::string_view host) {
  std::string text(host);
  unsigned char out[16];
  return ::inet_pton(AF_INET, text.c_str(), out) == 1 || ::inet_pton(AF_INET6, text.c_str(), out) == 1;
}

bool is_loopback_name(std::string_view host) {
  return host == "localhost" || host == "::1" || (host.starts_with("127.") && is_address(host));
}

std::string Origin::authority() const {
  bool v6 = host.find(':') != host.npos;
  std::string out = v6 ? cat('[', host, ']') : host;
  return port == (tls ? 443 : 80) ? out : cat(out, ':', port);
}

std::string Url::text() const { return cat(origin.tls ? "https://" : "http://", origin.authority(), target); }

Result<Origin> parse_authority(std::string_view text, bool tls) {
  Origin origin{tls, {}, static_cast<std::uint16_t>(tls ? 443 : 80)};
  std::string lowered = to_lower(text);
  std::string_view rest = lowered;
  std::string_view port;
  if (rest.starts_with('[')) {
    std::size_t end = rest.find(']');
    if (end == rest.npos || !is_address(rest.substr(1, end - 1))) return bad("a host in brackets must be an IPv6 address");
    origin.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (!rest.empty() && rest.front() != ':') return bad("what follows the address is no port");
    port = rest.empty() ? rest : rest.substr(1);
    if (!rest.empty() && port.empty()) return bad("the port is missing");
  } else {
    std::size_t colon = rest.find(':');
    origin.host = rest.substr(0, colon);
    if (!is_host(origin.host)) return bad("not a host name");
    if (colon != rest.npos) {
      port = rest.substr(colon + 1);
      if (port.empty()) return bad("the port is missing");
    }
  }
  if (port.empty()) return origin;
  auto number = parse_int<std::uint16_t>(port);
  if (!number || *number == 0) return bad("the port must be a number from 1 to 65535");
  origin.port = *number;
  return origin;
}

Result<Url> parse_url(std::string_view text) {
  if (text.size() > kMaxUrl) return bad("the URL is too long");
  bool clean = std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (!clean) return bad("the URL has characters that no URL has");
  bool tls = text.starts_with("https://");
  if (!tls && !text.starts_with("http://")) return bad("only https URLs are followed");
  text.remove_prefix(tls ? 8 : 7);
  text = text.substr(0, text.find('#'));
  std::size_t end = text.find_first_of("/?");
  std::string_view authority = text.substr(0, end);
  if (authority.find('@') != authority.npos) return bad("a URL with a user name is not followed");
  Url url;
  TRY(url.origin, parse_authority(authority, tls));
  std::string_view target = end == text.npos ? std::string_view() : text.substr(end);
  url.target = target.starts_with('/') ? std::string(target) : cat('/', target);
  return url;
}

Result<Url> follow(const Url& base, std::string_view location) {
  if (location.starts_with("//")) return parse_url(cat(base.origin.tls ? "https:" : "http:", location));
  if (!location.starts_with('/')) return parse_url(location);
  TRY(auto url, parse_url(cat(base.origin.tls ? "https://" : "http://", "x", location)));
  url.origin = base.origin;
  return url;
}

bool are_neighbours(std::string_view host, std::string_view other) {
  if (host == other) return true;
  if (is_address(host) || is_address(other)) return false;
  if (host.find('.') == host.npos || other.find('.') == other.npos) return false;
  std::string_view parent = parent_of(host);
  return is_below(other, host) || other == parent || is_below(other, parent) || is_below(host, other);
}

}  // namespace osb::image::registry
