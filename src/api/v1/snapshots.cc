#include "api/render.h"
#include "api/v1/handlers.h"
#include "api/v1/query.h"
#include "base/text.h"
#include "model/json.h"

namespace osb::api::v1 {
namespace {

// The body may be missing, {} or {"name": "..."}.
Result<std::string> parse_name(std::string_view body) {
  if (body.empty()) return std::string();
  TRY(auto object, parse_json_object(body));
  const auto* value = object.if_contains("name");
  if (value == nullptr || value->is_null()) return std::string();
  auto wrong = [](std::string_view why) {
    return Error(Errc::malformed, cat("name ", why)).with_code("SANDBOX::INVALID_PARAMETER").at("name");
  };
  if (!value->is_string()) return wrong("must be a string.");
  std::string name(value->get_string());
  if (name.empty() || name.size() > lifecycle::Snapshots::kMaxNameBytes)
    return wrong(cat("must have 1 to ", lifecycle::Snapshots::kMaxNameBytes, " bytes."));
  if (name.find('\0') != std::string::npos) return wrong("must not contain NUL.");
  return name;
}

std::string id_in(const Call& call) { return std::string(call.param("id")); }

}  // namespace

Reply create_snapshot(Context& context, Call call) {
  CO_TRY(auto id, sandbox_id(call));
  CO_TRY(auto name, parse_name(call.body));
  CO_TRY(auto snapshot, context.lifecycle.snapshots().create(id, std::move(name), call.caller));
  auto response = http::Response::json(202, snapshot_json(snapshot));
  response.headers.add("Location", cat("/v1/snapshots/", snapshot.id.text()));
  co_return response;
}

Reply list_snapshots(Context& context, Call call) {
  CO_TRY(auto query, parse_snapshot_query(call.request.query));
  lifecycle::SnapshotListing listing;
  if (!query.matches_nothing) listing = context.lifecycle.snapshots().list(query.filter, query.page.number, query.page.size, call.caller);
  co_return http::Response::json(200, listing_json(listing, query.page));
}

Reply get_snapshot(Context& context, Call call) {
  CO_TRY(auto snapshot, context.lifecycle.snapshots().get(id_in(call), call.caller));
  co_return http::Response::json(200, snapshot_json(snapshot));
}

Reply delete_snapshot(Context& context, Call call) {
  CO_TRY([[maybe_unused]] auto done, context.lifecycle.snapshots().remove(id_in(call), call.caller));
  co_return http::Response::empty(204);
}

}  // namespace osb::api::v1
