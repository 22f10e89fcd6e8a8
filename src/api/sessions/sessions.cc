#include "api/json_text.h"
#include "api/sessions/handlers.h"
#include "api/sessions/parse.h"
#include "api/sessions/render.h"
#include "api/sessions/session_id.h"

namespace osb::api::sessions {

Result<SandboxId> session_id(const Call& call) {
  auto text = call.param("session_id");
  if (auto id = SandboxId::parse(text)) return *id;
  return Error(Errc::not_found, cat("There is no session ", text.substr(0, 64), ".")).with_code("SESSION::NOT_FOUND");
}

Result<std::string> idempotency_key(const Call& call) {
  const auto& headers = call.request.headers;
  if (headers.count("Idempotency-Key") <= 1 && (!headers.has("Idempotency-Key") || !headers.get("Idempotency-Key").empty()))
    return std::string(headers.get("Idempotency-Key"));
  return Error(Errc::invalid_argument, "Idempotency-Key: must be given once and not be empty")
      .with_code("SESSION::INVALID_PARAMETER")
      .at("Idempotency-Key");
}

Reply create_session(Context& context, Call call) {
  CO_TRY(auto request, parse_create(call.body));
  CO_TRY(auto key, idempotency_key(call));
  CO_TRY(auto session, co_await context.service.create(std::move(request), std::move(key), std::move(call.caller)));
  auto response = http::Response::json(201, session_json(session));
  if (session.replayed) response.headers.add("Idempotency-Replayed", "true");
  response.headers.add("Location", cat("/api/v1/sessions/", session.sandbox.id.text()));
  co_return response;
}

Reply list_sessions(Context& context, Call call) {
  CO_TRY(auto page, parse_page(call.request.query));
  CO_TRY(auto sessions, context.service.list(page.number, page.size, call.caller));
  co_return http::Response::json(200, page_json(sessions));
}

Reply get_session(Context& context, Call call) {
  CO_TRY(auto id, session_id(call));
  CO_TRY(auto session, co_await context.service.get(std::move(id), std::move(call.caller)));
  co_return http::Response::json(200, session_json(session));
}

Reply delete_session(Context& context, Call call) {
  CO_TRY(auto id, session_id(call));
  CO_TRY([[maybe_unused]] auto gone, co_await context.service.destroy(std::move(id), std::move(call.caller)));
  co_return http::Response::empty(204);
}

Reply health(Context& context, Call) {
  ObjectText text;
  text.add("status", "healthy").add("version", context.version).add("runtime", context.runtime);
  co_return http::Response::json(200, std::move(text).done());
}

}  // namespace osb::api::sessions
