#include "cli/api.h"

#include <poll.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>

#include "base/clock.h"
#include "base/id.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "http/http.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

constexpr std::string_view kPageSize = "200";

Errc kind_of(int status) {
  switch (status) {
    case 400: return Errc::invalid_argument;
    case 401: return Errc::unauthenticated;
    case 403: return Errc::permission_denied;
    case 404: return Errc::not_found;
    case 409: return Errc::conflict;
    case 413: return Errc::too_large;
    case 422: return Errc::malformed;
    case 429:
    case 507: return Errc::exhausted;
    case 501: return Errc::unsupported;
    case 502:
    case 503: return Errc::unavailable;
    case 504: return Errc::timeout;
    default: return Errc::internal;
  }
}

std::string hint_for(int status) {
  if (status == 401) return "give the daemon's key with OPEN_SANDBOX_API_KEY or --api-key-file; the daemon keeps it in <state_dir>/api-key";
  if (status == 404) return "`opensandbox ls -a` lists what there is";
  return {};
}

std::string query_of(const ListFilter& filter, std::size_t page) {
  std::string out = cat("/v1/sandboxes?pageSize=", kPageSize, "&page=", page);
  for (const auto& state : filter.states) out += cat("&state=", http::percent_encode(state));
  std::string pairs;
  for (const auto& [key, value] : filter.metadata)
    pairs += cat(pairs.empty() ? "" : "&", http::percent_encode(key), "=", http::percent_encode(value));
  if (!pairs.empty()) out += cat("&metadata=", http::percent_encode(pairs));
  return out;
}

std::string describe_matches(const std::vector<std::string>& ids) {
  std::string out = "it could be ";
  for (std::size_t i = 0; i < ids.size() && i < 8; ++i) out += cat(i == 0 ? "" : ", ", ids[i]);
  if (ids.size() > 8) out += cat(" and ", ids.size() - 8, " more");
  return out;
}

constexpr int kPendingPause = 200;  // milliseconds

std::string status_text(const json::object& sandbox, std::string_view member) {
  const auto* status = sandbox.if_contains("status");
  return status != nullptr && status->is_object() ? text_of(status->get_object(), member) : std::string();
}
std::string state_of(const json::object& sandbox) { return status_text(sandbox, "state"); }
std::string message_of(const json::object& sandbox) { return status_text(sandbox, "message"); }

}  // namespace

std::string text_of(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::string text_of(const json::object& object, std::string_view key, std::string_view inner) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_object() ? text_of(value->get_object(), inner) : std::string();
}

Result<json::object> parse_object(std::string_view text) {
  boost::system::error_code failed;
  auto value = json::parse({text.data(), text.size()}, failed);
  if (failed || !value.is_object()) return Error(Errc::malformed, "the daemon's answer is not the JSON it should be");
  return std::move(value.get_object());
}

Error error_of(const Reply& reply) {
  auto object = parse_object(reply.body);
  std::string message = object ? text_of(*object, "message") : std::string();
  if (message.empty() && object) message = text_of(*object, "error");
  if (message.empty()) message = cat("the daemon answered ", reply.status);
  std::string hint = object ? text_of(*object, "hint") : std::string();
  bool about_a_file = object && text_of(*object, "code") == "FILE_NOT_FOUND";
  if (hint.empty() && !about_a_file) hint = hint_for(reply.status);
  return Error(kind_of(reply.status), std::move(message)).with_code(object ? text_of(*object, "code") : "").with_hint(hint);
}

Result<> Api::connect() {
  if (connection_ && connection_->reusable()) return Ok{};
  TRY(auto connection, another_connection());
  connection_.emplace(std::move(connection));
  return Ok{};
}

Result<Connection> Api::another_connection() {
  TRY(auto connection, Connection::open(address_, std::chrono::steady_clock::now() + Millis(5000)));
  connection.interrupted_by(interrupt_);
  return connection;
}

Result<Reply> Api::call_once(const Request& request, Millis within) {
  CHECK_OK(connect());
  connection_->interrupted_by(interrupt_);
  auto reply = connection_->call(request, std::chrono::steady_clock::now() + within);
  if (!reply) connection_.reset();
  return reply;
}

Result<Reply> Api::call(std::string method, std::string target, std::string body, Headers extra, Millis within) {
  Request request{std::move(method), std::move(target), std::move(extra), std::move(body)};
  if (!key_.empty()) request.headers.emplace_back("OPEN-SANDBOX-API-KEY", key_);
  if (!request.body.empty()) request.headers.emplace_back("Content-Type", "application/json");
  bool was_kept = connection_.has_value();
  auto reply = call_once(request, within);
  // A kept connection may have been closed by the daemon while nobody looked. Only create must not be sent twice.
  bool stale = !reply && was_kept && reply.error().kind() == Errc::unavailable && reply.error().sys() != EINTR;
  if (stale && request.target != "/v1/sandboxes") reply = call_once(request, within);
  if (!reply) return reply;
  if (reply->status > 299) return error_of(*reply);
  return reply;
}

Result<json::object> Api::create(const json::object& request, const std::string& idempotency_key) {
  Headers extra;
  if (!idempotency_key.empty()) extra.emplace_back("Idempotency-Key", idempotency_key);
  TRY(auto reply, call("POST", "/v1/sandboxes", json::serialize(request), std::move(extra), Millis(180'000)));
  TRY(auto made, parse_object(reply.body));
  if (state_of(made) != "Pending") return made;
  return wait_for_image(text_of(made, "id"));
}

// The image is on its way. A sandbox that comes to nothing is not left behind, nor one whose maker went away.
Result<json::object> Api::wait_for_image(const std::string& id) {
  note("waiting for the image...");
  while (true) {
    auto sandbox = get(id);
    std::string state = sandbox ? state_of(*sandbox) : std::string();
    if (state == "Running") return sandbox;
    if (sandbox && state == "Pending") {
      pollfd interrupt{interrupt_, POLLIN, 0};
      int ready = ::poll(&interrupt, interrupt_ < 0 ? 0 : 1, kPendingPause);
      if (ready <= 0) continue;
    }
    auto error = sandbox && state == "Failed" ? Error(Errc::unavailable, message_of(*sandbox))
                 : sandbox                    ? Error(Errc::unavailable, "interrupted while the image was being pulled", EINTR)
                                              : std::move(sandbox).error();
    interrupt_ = -1;  // the clean-up must not be interrupted by what it cleans up after
    if (auto gone = remove(id); !gone) warn(cat("sandbox ", id, " is left: ", gone.error().what()));
    return error;
  }
}

Result<json::object> Api::get(std::string_view id) {
  TRY(auto reply, call("GET", cat("/v1/sandboxes/", id)));
  return parse_object(reply.body);
}

Result<std::vector<json::object>> Api::list(const ListFilter& filter) {
  std::vector<json::object> out;
  for (std::size_t page = 1;; ++page) {
    TRY(auto reply, call("GET", query_of(filter, page)));
    TRY(auto object, parse_object(reply.body));
    const auto* items = object.if_contains("items");
    if (items == nullptr || !items->is_array()) return Error(Errc::malformed, "the daemon's list has no items");
    for (const auto& item : items->get_array())
      if (item.is_object()) out.push_back(item.get_object());
    const auto* pages = object.if_contains("pagination");
    const auto* more = pages != nullptr && pages->is_object() ? pages->get_object().if_contains("hasNextPage") : nullptr;
    if (more == nullptr || !more->is_bool() || !more->get_bool()) return out;
  }
}

Result<> Api::remove(std::string_view id) {
  auto reply = call("DELETE", cat("/v1/sandboxes/", id));
  if (!reply) return std::move(reply).error();
  return Ok{};
}

Result<std::string> Api::renew(std::string_view id, Millis from_now, Millis within) {
  WallTime until{wall_now().micros + from_now.count() * 1000};
  json::object body{{"expiresAt", format_rfc3339(until)}};
  TRY(auto reply, call("POST", cat("/v1/sandboxes/", id, "/renew-expiration"), json::serialize(body), {}, within));
  TRY(auto object, parse_object(reply.body));
  return text_of(object, "expiresAt");
}

Result<Door> Api::door(std::string_view id) {
  TRY(auto reply, call("GET", cat("/v1/sandboxes/", id, "/endpoints/44772")));
  TRY(auto object, parse_object(reply.body));
  auto endpoint = text_of(object, "endpoint");
  auto slash = endpoint.find('/');
  if (slash == std::string::npos) return Error(Errc::unsupported, "the daemon's endpoint is not behind its proxy");
  Door door{endpoint.substr(slash), {}};
  const auto* headers = object.if_contains("headers");
  if (headers == nullptr || !headers->is_object()) return door;
  for (const auto& [name, value] : headers->get_object())
    if (value.is_string()) door.headers.emplace_back(std::string(name), std::string(value.get_string()));
  return door;
}

Result<std::string> Api::resolve(std::string_view text) {
  if (is_id_text(text)) return std::string(text);
  TRY(auto sandboxes, list({}));
  std::vector<std::string> matches;
  for (const auto& sandbox : sandboxes) {
    auto id = text_of(sandbox, "id");
    if (!text.empty() && (id.starts_with(text) || text_of(sandbox, "metadata", "name") == text)) matches.push_back(id);
  }
  if (matches.size() == 1) return matches.front();
  if (matches.empty()) return Error(Errc::not_found, cat("no sandbox '", text, "'")).with_hint(hint_for(404));
  return Error(Errc::conflict, cat("'", text, "' is ambiguous")).with_hint(describe_matches(matches));
}

}  // namespace osb::cli
