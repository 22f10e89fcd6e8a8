#include "api/sessions/visitors.h"

#include <algorithm>

#include "base/text.h"

namespace osb::api::sessions {
namespace {

constexpr std::string_view kKeyHeaders[] = {"OPEN-SANDBOX-API-KEY", "X-API-Key", "Authorization"};

bool is_loopback_v4(std::string_view host) {
  auto parts = split(host, '.');
  if (parts.size() != 4 || parts[0] != "127") return false;
  return std::all_of(parts.begin(), parts.end(), [](std::string_view part) { return parse_int<std::uint8_t>(part).has_value(); });
}

Error no_key(const http::Request& request, const DoorRules& rules) {
  std::string why = "The API key is missing.";
  if (rules.loopback && !rules.require_key && request.peer_uid)
    why = cat("The API key is missing, and programs of user ", *request.peer_uid, " need one.");
  return Error(Errc::unauthenticated, std::move(why))
      .with_code("MISSING_API_KEY")
      .with_hint("Send the key in the header OPEN-SANDBOX-API-KEY, or ask the operator to name the user in sessions.users_without_key.");
}

// The key alone, in the field that Keys looks at.
Result<http::Headers> key_field(const http::Headers& headers) {
  auto value = headers.get("Authorization");
  constexpr std::string_view kBearer = "Bearer ";
  bool bearer = headers.count("Authorization") == 1 && value.size() > kBearer.size() && iequals(value.substr(0, kBearer.size()), kBearer);
  if (!bearer) return Error(Errc::unauthenticated, "Authorization must be \"Bearer KEY\".").with_code("INVALID_API_KEY");
  http::Headers out;
  out.add("OPEN-SANDBOX-API-KEY", std::string(trim(value.substr(kBearer.size()))));
  return out;
}

}  // namespace

bool is_loopback_authority(std::string_view host) {
  if (host.starts_with('[')) {
    auto end = host.find(']');
    if (end == host.npos) return false;
    auto rest = host.substr(end + 1);
    bool port = rest.empty() || (rest.front() == ':' && parse_int<std::uint16_t>(rest.substr(1)));
    return port && host.substr(0, end + 1) == "[::1]";
  }
  auto colon = host.find(':');
  if (colon != host.npos && !parse_int<std::uint16_t>(host.substr(colon + 1))) return false;
  auto name = host.substr(0, colon);
  return iequals(name, "localhost") || is_loopback_v4(name);
}

Result<> check_browser(const http::Request& request, const DoorRules& rules) {
  const auto& headers = request.headers;
  if (rules.loopback && !is_loopback_authority(headers.get("Host")))
    return Error(Errc::permission_denied,
                 cat("Host ", json_string(headers.get("Host").substr(0, 80)), " is not a name of this machine's loopback."))
        .with_code("SESSION::WRONG_HOST")
        .with_hint("Call it as 127.0.0.1, [::1] or localhost.");
  if (!headers.has("Origin")) return Ok{};
  const auto& allowed = rules.allowed_origins;
  bool known = headers.count("Origin") == 1 && std::find(allowed.begin(), allowed.end(), headers.get("Origin")) != allowed.end();
  if (known) return Ok{};
  return Error(Errc::permission_denied, cat("Pages of ", json_string(headers.get("Origin").substr(0, 80)), " may not call this."))
      .with_code("SESSION::WRONG_ORIGIN")
      .with_hint("Name the origin in sessions.allowed_origins, or call from a program.");
}

Result<Caller> identify(const http::Request& request, const Keys& keys, const DoorRules& rules) {
  const auto& headers = request.headers;
  bool shows_key = std::any_of(std::begin(kKeyHeaders), std::end(kKeyHeaders), [&](auto name) { return headers.has(name); });
  if (shows_key) {
    if (headers.has(kKeyHeaders[0]) || headers.has(kKeyHeaders[1])) return keys.identify(headers, request.request_id);
    TRY(auto field, key_field(headers));
    return keys.identify(field, request.request_id);
  }
  bool user = rules.loopback && !rules.require_key && request.peer_uid && rules.users_without_key.contains(*request.peer_uid);
  if (user) return Caller{cat("user:", *request.peer_uid), false, request.request_id};
  auto open = keys.identify(headers, request.request_id);  // everybody is let in where the operator has switched keys off
  if (open && !rules.require_key) return open;
  return no_key(request, rules);
}

}  // namespace osb::api::sessions
