#include <map>

#include "api/json_text.h"
#include "api/v1/handlers.h"
#include "api/v1/routes.h"

namespace osb::api::v1 {
namespace {

std::string_view place(Mount mount) { return mount == Mount::root_only ? "" : "/v1"; }

std::string routes_text() {
  std::string out = "OpenSandbox lifecycle API. Paths below /v1 also work without /v1 unless noted in the specification.\n\n";
  for (const auto& route : routes()) {
    if (route.access == Access::local) continue;
    out += cat(route.method == "*" ? "ANY" : route.method, " ", place(route.mount), route.pattern, "\n    ", route.summary, "\n");
  }
  return out;
}

std::string operation(const RouteSpec& route) {
  ObjectText text;
  text.add("summary", route.summary).raw("responses", R"({"default":{"description":"see the specification"}})");
  if (route.access == Access::open || route.access == Access::token) text.raw("security", "[]");
  return std::move(text).done();
}

// The table as OpenAPI: complete in what exists, brief in what it says; spec/lifecycle.yaml has the schemas.
std::string routes_openapi() {
  std::map<std::string, ObjectText> paths;
  for (const auto& route : routes()) {
    if (route.access == Access::local || route.method == "*") continue;
    paths[cat(place(route.mount), route.pattern)].raw(to_lower(route.method), operation(route));
  }
  ObjectText all;
  for (auto& [path, item] : paths) all.raw(path, std::move(item).done());
  ObjectText text;
  text.add("openapi", "3.1.0").raw("info", R"({"title":"OpenSandbox lifecycle API","version":"1"})");
  text.raw("paths", std::move(all).done());
  text.raw("components", R"({"securitySchemes":{"key":{"type":"apiKey","in":"header","name":"OPEN-SANDBOX-API-KEY"}}})");
  text.raw("security", R"([{"key":[]}])");
  return std::move(text).done();
}

}  // namespace

Reply health(Context&, Call) { co_return http::Response::json(200, R"({"status":"healthy"})"); }

Reply version(Context& context, Call) {
  ObjectText text;
  text.add("version", context.options.version).add("api", "v1").add("runtime", context.lifecycle.runtime().capabilities().name);
  co_return http::Response::json(200, std::move(text).done());
}

Reply docs(Context&, Call) { co_return http::Response::text(200, routes_text()); }

Reply openapi(Context&, Call) { co_return http::Response::json(200, routes_openapi()); }

Reply take_metrics_event(Context&, Call) { co_return http::Response::empty(204); }

Reply daemon_status(Context& context, Call) {
  if (!context.daemon.status) co_return Error(Errc::unsupported, "there is no daemon to ask");
  co_return http::Response::json(200, context.daemon.status());
}

Reply daemon_reload(Context& context, Call) {
  if (!context.daemon.reload) co_return Error(Errc::unsupported, "there is no daemon to ask");
  CO_TRY(auto report, context.daemon.reload());
  co_return http::Response::json(200, std::move(report));
}

}  // namespace osb::api::v1
