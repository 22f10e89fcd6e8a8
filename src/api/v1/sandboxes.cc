#include <algorithm>

#include "api/json_text.h"
#include "api/render.h"
#include "api/v1/handlers.h"
#include "api/v1/query.h"
#include "image/sha256.h"
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

Result<std::optional<lifecycle::CreateOnce>> idempotency_of(const Call& call) {
  const auto& headers = call.request.headers;
  if (!headers.has("Idempotency-Key")) return std::optional<lifecycle::CreateOnce>();
  auto key = headers.get("Idempotency-Key");
  if (headers.count("Idempotency-Key") == 1 && lifecycle::is_idempotency_key(key))
    return std::optional(lifecycle::CreateOnce{std::string(key), image::sha256_hex(call.body)});
  return Error(Errc::invalid_argument, "Idempotency-Key must be one key of 1 to 128 characters out of A-Z a-z 0-9 . _ : -")
      .with_code("SANDBOX::INVALID_PARAMETER")
      .at("Idempotency-Key");
}

Result<SandboxSpec> read_create(Context& context, const Call& call) {
  if (const auto* known = context.creates.find(call.body)) return *known;
  FindPool find_pool;
  if (context.lifecycle.pools().check_supported())
    find_pool = [&](const std::string& name) { return context.lifecycle.pools().spec_of(name, call.caller); };
  TRY(auto spec, parse_create(call.body, context.options.defaults, find_pool));
  context.creates.keep(call.body, spec);
  return spec;
}

}  // namespace

Reply create_sandbox(Context& context, Call call) {
  CO_TRY(auto spec, read_create(context, call));
  CO_TRY(auto once, idempotency_of(call));
  if (context.proxy.gate().judges(spec)) {
    proxy::Asking asking;
    asking.client = call.client;
    CO_TRY([[maybe_unused]] auto passed, co_await context.proxy.gate().pass_create(call.caller, spec, std::move(asking)));
  }
  if (once) {
    CO_TRY(auto created, co_await context.lifecycle.create_once(std::move(spec), *std::move(once), std::move(call.caller)));
    auto response = http::Response::json(202, created_json(created.sandbox));
    if (created.replayed) response.headers.add("Idempotency-Replayed", "true");
    co_return response;
  }
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
  CO_TRY(const auto* sandbox, context.lifecycle.look_at(id, call.caller));
  co_return http::Response::json(200, sandbox_json(*sandbox));
}

Reply delete_sandbox(Context& context, Call call) {
  CO_TRY(auto id, sandbox_id(call));
  CO_TRY([[maybe_unused]] auto done, co_await context.lifecycle.destroy(id, std::move(call.caller)));
  // Who waits for an approval hears it now. The connection goes with the sandbox: closed earlier it would only wake what is dying.
  context.proxy.gate().forget(id);
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
