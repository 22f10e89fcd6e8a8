#include "proxy/headers.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "proxy/tokens.h"

namespace osb::proxy {
namespace {

constexpr std::array<std::string_view, 8> kNeverForwarded = {
    "Host", "Expect", "OPEN-SANDBOX-API-KEY", "X-API-Key", kExecdTokenHeader, kEgressTokenHeader, kAccessTokenHeader, "X-Request-ID",
};
constexpr std::array<std::string_view, 3> kRewritten = {"Content-Length", "Transfer-Encoding", "X-Forwarded-For"};
// Ours to interpret, and of no use to execd: a browser's session must not be readable in the sandbox's control plane.
constexpr std::array<std::string_view, 2> kNotForExecd = {"Authorization", "Cookie"};

template <std::size_t N>
bool among(std::string_view name, const std::array<std::string_view, N>& list) {
  return std::any_of(list.begin(), list.end(), [&](std::string_view item) { return iequals(item, name); });
}

// Tokens of every Connection field: these fields are for this hop only.
std::vector<std::string_view> connection_tokens(const http::Headers& headers) {
  std::vector<std::string_view> tokens;
  for (const auto& field : headers.fields()) {
    if (!iequals(field.name, "Connection")) continue;
    for (auto part : split(field.value, ',')) tokens.push_back(trim(part));
  }
  return tokens;
}

bool named(std::string_view name, const std::vector<std::string_view>& tokens) {
  return std::any_of(tokens.begin(), tokens.end(), [&](std::string_view token) { return iequals(token, name); });
}

bool forwarded(std::string_view name, std::uint16_t port, const std::vector<std::string_view>& tokens) {
  if (http::is_hop_by_hop(name) || among(name, kNeverForwarded) || among(name, kRewritten) || named(name, tokens)) return false;
  return port != kExecdPort || !among(name, kNotForExecd);
}

void add_forwarding(const http::Request& request, http::Headers& out) {
  std::string chain(request.headers.get("X-Forwarded-For"));
  if (!chain.empty()) chain += ", ";
  chain += peer_address(request.peer);
  out.add("X-Forwarded-For", std::move(chain));
  if (!out.has("X-Forwarded-Proto")) out.add("X-Forwarded-Proto", "http");
  auto host = request.headers.get("Host");
  if (!host.empty() && !out.has("X-Forwarded-Host")) out.add("X-Forwarded-Host", std::string(host));
}

}  // namespace

http::Headers request_headers(const http::Request& request, std::uint16_t port, bool upgrade) {
  auto tokens = connection_tokens(request.headers);
  http::Headers out;
  for (const auto& field : request.headers.fields())
    if (forwarded(field.name, port, tokens)) out.add(field.name, field.value);
  add_forwarding(request, out);
  out.add("X-Request-ID", request.request_id);
  if (upgrade) {
    out.add("Connection", "Upgrade");
    out.add("Upgrade", std::string(request.headers.get("Upgrade")));
  }
  return out;
}

http::Headers response_headers(const http::Headers& from) {
  auto tokens = connection_tokens(from);
  http::Headers out;
  for (const auto& field : from.fields()) {
    if (http::is_hop_by_hop(field.name) || named(field.name, tokens) || iequals(field.name, "X-Request-ID")) continue;
    if (iequals(field.name, "Content-Length")) continue;
    out.add(field.name, field.value);
  }
  return out;
}

bool wants_upgrade(const http::Headers& headers) { return headers.count("Upgrade") == 1 && named("Upgrade", connection_tokens(headers)); }

bool has_body(const http::Request& request) { return request.body && request.body->content_length() != std::optional<std::uint64_t>(0); }

std::string peer_address(const std::string& peer) {
  auto colon = peer.rfind(':');
  if (colon == std::string::npos) return peer;
  std::string_view host = std::string_view(peer).substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return std::string(host);
}

}  // namespace osb::proxy
