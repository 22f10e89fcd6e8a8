#include "api/sessions/door.h"

#include "api/connect/relay_door.h"
#include "api/sessions/handlers.h"
#include "api/sessions/parse.h"
#include "api/sessions/render.h"
#include "api/sessions/routes.h"
#include "base/log.h"
#include "base/text.h"
#include "lifecycle/admission.h"
#include "model/json.h"
#include "proxy/headers.h"

namespace osb::api::sessions {
namespace {

Error no_such_route() {
  return Error(Errc::not_found, "There is no such path.")
      .with_code("GENERAL::NOT_FOUND")
      .with_hint("spec/sessions.yaml lists what there is.");
}

http::Response wrong_method(const std::vector<std::string>& allowed, std::string_view request_id) {
  std::string allow;
  for (const auto& method : allowed) allow += cat(allow.empty() ? "" : ", ", method);
  auto error = Error(Errc::invalid_argument, cat("This path takes only ", allow, ".")).with_code("GENERAL::METHOD_NOT_ALLOWED");
  auto response = http::Response::json(405, error_json(error, request_id));
  response.headers.add("Allow", std::move(allow));
  return response;
}

// A page of another origin can send JSON only after a pre-flight that is refused, if JSON must be labelled as such.
bool is_json(const http::Request& request) {
  auto type = request.headers.get("Content-Type");
  return iequals(trim(type.substr(0, type.find(';'))), "application/json");
}

Error not_json() {
  return Error(Errc::invalid_argument, "The body must be JSON, sent with Content-Type: application/json.")
      .with_code("GENERAL::UNSUPPORTED_MEDIA_TYPE");
}

http::Headers cors_fields(const http::Request& request) {
  http::Headers out;
  if (!request.headers.has("Origin")) return out;
  out.add("Access-Control-Allow-Origin", std::string(request.headers.get("Origin")));
  out.add("Access-Control-Expose-Headers", "X-Request-ID, Retry-After, Idempotency-Replayed, Location");
  out.add("Vary", "Origin");
  return out;
}

Task<void> send(http::Responder& responder, http::Response response, http::Headers extra) {
  for (const auto& field : extra.fields()) response.headers.add(field.name, field.value);
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));  // a client that left needs no answer
}

void note(const Error& error, const http::Request& request) {
  bool told = error.code() == kClientGone || status_of(error) < 500 || lifecycle::retry_after_seconds(error.code()) > 0;
  if (!told) log::error("request failed", {{"request_id", request.request_id}, {"code", error.code()}, {"error", error.what()}});
}

}  // namespace

SessionDoor::SessionDoor(Context context, Keys keys, DoorRules rules, std::size_t max_requests_per_key)
    : context_(std::move(context)), keys_(std::move(keys)), rules_(std::move(rules)), requests_(max_requests_per_key) {
  for (const RouteSpec& route : routes()) router_.add(std::string(route.method), cat(kMount, route.pattern), {});
}

http::Handler SessionDoor::handler() {
  return [this](http::Request& request, http::Responder& responder) { return serve(request, responder); };
}

Task<void> SessionDoor::serve(http::Request& request, http::Responder& responder) {
  if (auto fine = check_browser(request, rules_); !fine) {
    if (connect::is_rpc_path(request.path)) co_return co_await connect::refuse(fine.error(), request, responder, {});
    co_return co_await send(responder, render(fine.error(), request.request_id), {});
  }
  auto extra = cors_fields(request);
  if (request.method == "OPTIONS" && request.headers.has("Origin"))
    co_return co_await send(responder, preflight(request), std::move(extra));
  if (connect::is_rpc_path(request.path)) co_return co_await serve_rpc(request, responder, std::move(extra));
  auto answer = co_await respond(request, responder, extra);
  if (!answer) note(answer.error(), request);
  if (responder.started() || (answer && !*answer)) co_return;
  auto response = answer ? **std::move(answer) : render(answer.error(), request.request_id);
  if (!answer && answer.error().code() == "GENERAL::UNSUPPORTED_MEDIA_TYPE") response.status = 415;
  co_await send(responder, std::move(response), std::move(extra));
}

// Connect and gRPC-Web: the same visitors, the same bounds, other words.
Task<void> SessionDoor::serve_rpc(http::Request& request, http::Responder& responder, http::Headers extra) {
  auto caller = identify(request, keys_, rules_);
  auto counted = caller ? requests_.enter(caller->name) : RequestCount::Mark();
  if (!counted) caller = connect::too_many_calls();
  if (!caller) co_return co_await connect::refuse(caller.error(), request, responder, std::move(extra));
  co_await connect::serve(context_.service, *std::move(caller), request, responder, std::move(extra));
}

// Answered only for origins that are allowed: the others did not come this far.
http::Response SessionDoor::preflight(const http::Request&) const {
  auto response = http::Response::empty(204);
  response.headers.add("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE");
  response.headers.add(
      "Access-Control-Allow-Headers",
      "Content-Type, Accept, Authorization, OPEN-SANDBOX-API-KEY, X-API-Key, Idempotency-Key, Last-Event-ID, X-Request-ID, "
      "Connect-Protocol-Version, Connect-Timeout-Ms, X-Grpc-Web, X-User-Agent, Grpc-Timeout");
  response.headers.add("Access-Control-Max-Age", "600");
  return response;
}

Reply SessionDoor::respond(http::Request& request, http::Responder& responder, http::Headers extra) {
  auto match = router_.find(request.method, request.path);
  const RouteSpec* route = match.route ? &routes()[static_cast<std::size_t>(match.route - router_.routes().data())] : nullptr;
  auto caller = route && route->open ? Result<Caller>(Caller{"anyone", false, request.request_id}) : identify(request, keys_, rules_);
  if (!caller) co_return std::move(caller).error();
  auto counted = requests_.enter(caller->name);
  if (!counted)
    co_return Error(Errc::exhausted, "Too many requests of this caller are being answered; wait for some to end.")
        .with_code("GENERAL::TOO_MANY_REQUESTS");
  if (!route && match.path_known) co_return wrong_method(match.allowed, request.request_id);
  if (!route) co_return no_such_route();
  Call call{request, responder, std::move(match.params), *std::move(caller), std::move(extra), {}};
  bool takes_json = route->body == Body::json || route->body == Body::large_json;
  if (takes_json && !is_json(request)) co_return not_json();
  if (takes_json) {
    auto body = co_await request.body->read_all(route->body == Body::json ? kMaxJsonBytes : kLargeJson);
    if (!body) co_return std::move(body).error();
    call.body = *std::move(body);
  }
  co_return co_await route->answer(context_, std::move(call));
}

}  // namespace osb::api::sessions
