#include <algorithm>

#include "api/json_text.h"
#include "api/render.h"
#include "api/v1/handlers.h"
#include "api/v1/query.h"
#include "model/json.h"
#include "model/metadata.h"

namespace osb::api::v1 {
namespace {

Result<WallTime> parse_renewal(std::string_view body) {
  TRY(auto object, parse_json_object(body));
  const auto* value = object.if_contains("expiresAt");
  const auto* text = value ? value->if_string() : nullptr;
  auto time = text ? parse_rfc3339(std::string_view(*text)) : std::nullopt;
  if (time) return *time;
  return Error(Errc::malformed, "expiresAt must be a time like 2026-01-02T03:04:05Z.").at("expiresAt");
}

}  // namespace

Reply create_sandbox(Context& context, Call call) {
  CO_TRY(auto spec, parse_create(call.body, context.options.defaults));
  CO_TRY(auto sandbox, co_await context.lifecycle.create(std::move(spec), std::move(call.caller)));
  co_return http::Response::json(202, created_json(sandbox));
}

Reply list_sandboxes(Context& context, Call call) {
  CO_TRY(auto query, parse_list_query(call.request.query));
  lifecycle::Listing listing;
  if (!query.matches_nothing) listing = context.lifecycle.list(query.filter, query.page.number, query.page.size, call.caller);
  co_return http::Response::json(200, listing_json(listing, query.page));
}

Reply get_sandbox(Context& context, Call call) {
  CO_TRY(auto id, sandbox_id(call));
  CO_TRY(auto sandbox, context.lifecycle.get(id, call.caller));
  co_return http::Response::json(200, sandbox_json(sandbox));
}

Reply delete_sandbox(Context& context, Call call) {
  CO_TRY(auto id, sandbox_id(call));
  context.proxy.forget(id);
  CO_TRY([[maybe_unused]] auto done, co_await context.lifecycle.destroy(std::move(id), std::move(call.caller)));
  co_return http::Response::empty(204);
}

Reply pause_sandbox(Context& context, Call call) {
  CO_TRY(auto id, sandbox_id(call));
  CO_TRY([[maybe_unused]] auto done, co_await context.lifecycle.pause(std::move(id), std::move(call.caller)));
  co_return http::Response::empty(202);
}

Reply resume_sandbox(Context& context, Call call) {
  CO_TRY(auto id, sandbox_id(call));
  CO_TRY([[maybe_unused]] auto done, co_await context.lifecycle.resume(std::move(id), std::move(call.caller)));
  co_return http::Response::empty(202);
}

Reply renew_sandbox(Context& context, Call call) {
  CO_TRY(auto id, sandbox_id(call));
  CO_TRY(auto wanted, parse_renewal(call.body));
  CO_TRY(auto expires_at, co_await context.lifecycle.renew(std::move(id), wanted, std::move(call.caller)));
  ObjectText text;
  text.add("expiresAt", format_rfc3339(expires_at));
  co_return http::Response::json(200, std::move(text).done());
}

Reply patch_metadata(Context& context, Call call) {
  CO_TRY(auto id, sandbox_id(call));
  CO_TRY(auto patch, parse_metadata_patch(call.body));
  CO_TRY(auto sandbox, context.lifecycle.patch_metadata(id, patch, call.caller));
  co_return http::Response::json(200, sandbox_json(sandbox));
}

}  // namespace osb::api::v1
