#include "api/api.h"

#include "api/render.h"
#include "api/v1/routes.h"
#include "base/log.h"
#include "base/text.h"
#include "model/json.h"
#include "proxy/headers.h"

namespace osb::api {
namespace {

http::Response no_such_route() { return problem(404, "GENERAL::NOT_FOUND", "There is no such path; GET /docs lists what there is."); }

http::Response too_many_requests() {
  auto response = problem(429, "GENERAL::TOO_MANY_REQUESTS", "Too many requests of this key are being answered; wait for some to end.");
  response.headers.add("Retry-After", "1");
  return response;
}

http::Response wrong_method(const std::vector<std::string>& allowed) {
  std::string allow;
  for (const auto& method : allowed) allow += cat(allow.empty() ? "" : ", ", method);
  auto response = problem(405, "GENERAL::METHOD_NOT_ALLOWED", cat("This path takes only ", allow, "."));
  response.headers.add("Allow", std::move(allow));
  return response;
}

// A page of another origin can send JSON only after a pre-flight that nobody answers, if JSON must be labelled as such.
bool is_json_type(std::string_view content_type) {
  auto media = trim(content_type.substr(0, content_type.find(';')));
  return iequals(media, "application/json") || iequals(media, "application/merge-patch+json");
}

// A failure of ours is logged here, once, with the id the client can quote.
http::Response tell(const Error& error, const http::Request& request, Door door) {
  int status = status_of(error.kind());
  bool refused = lifecycle::retry_after_seconds(error.code()) > 0;  // told where it was decided
  if (status >= 500 && status != 501 && !refused)
    log::error("request failed", {{"request_id", request.request_id}, {"code", error.code()}, {"error", error.what()}});
  return render(error, door == Door::local ? Reader::local : Reader::remote);
}

Task<void> send(http::Responder& responder, http::Response response) {
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));  // a client that left needs no answer
}

}  // namespace

Result<SandboxId> sandbox_id(const Call& call) {
  auto text = call.param("id");
  if (auto id = SandboxId::parse(text)) return *id;
  return Error(Errc::not_found, cat("Sandbox ", text.substr(0, 64), " not found.")).with_code("DOCKER::SANDBOX_NOT_FOUND");
}

Api::Api(asio::io_context& io, lifecycle::Service& lifecycle, proxy::Proxy& proxy, image::Store& images, Keys keys, Options options)
    : context_{io, lifecycle, proxy, images, std::move(options)}, keys_(std::move(keys)), requests_(context_.options.max_requests_per_key) {
  for (const RouteSpec& spec : v1::routes()) {
    if (spec.mount != Mount::root_only) mount(spec, "/v1", 1);
    if (spec.mount != Mount::v1_only) mount(spec, "", 0);
  }
}

Api::~Api() { context_.workers.join(); }

void Api::mount(const RouteSpec& spec, std::string_view prefix, std::size_t segments) {
  entries_.push_back({&spec, cat(prefix, spec.pattern), segments});
  router_.add(std::string(spec.method), entries_.back().pattern, {});
}

http::Handler Api::handler(Door door) {
  return [this, door](http::Request& request, http::Responder& responder) { return serve(request, responder, door); };
}

Task<void> Api::serve(http::Request& request, http::Responder& responder, Door door) {
  auto match = router_.find(request.method, request.path);
  const Entry* entry = match.route ? &entries_[static_cast<std::size_t>(match.route - router_.routes().data())] : nullptr;
  auto caller = admit(request, door, entry);
  if (!caller) co_return co_await send(responder, tell(caller.error(), request, door));
  auto counted = door == Door::local ? RequestCount::Mark() : requests_.enter(payer(*caller, entry, match.params));
  if (!counted) co_return co_await send(responder, too_many_requests());
  if (entry && entry->spec->access == Access::local && door != Door::local) entry = nullptr;
  if (!entry) {
    bool known = match.path_known && !match.route;
    co_return co_await send(responder, known ? wrong_method(match.allowed) : no_such_route());
  }
  Call call{request, std::move(match.params), *std::move(caller), door, entry->mount_segments, {}, &responder};
  if (!entry->spec->stream) {
    auto response = co_await respond(request, *entry, std::move(call));
    co_return co_await send(responder, std::move(response));
  }
  auto done = co_await entry->spec->stream(context_, std::move(call), responder);
  if (!done && !responder.started()) co_await send(responder, tell(done.error(), request, door));
}

// Whose bound a request counts against. What goes to a sandbox counts against the key that made the sandbox.
std::string_view Api::payer(const Caller& caller, const Entry* entry, const http::Router::Params& params) const {
  if (!entry || entry->spec->access != Access::token) return caller.name;
  auto id = params.find("id");
  auto owner = id == params.end() ? std::string_view() : context_.lifecycle.owner_of(id->second);
  return owner.empty() ? std::string_view(caller.name) : owner;
}

Result<Caller> Api::admit(const http::Request& request, Door door, const Entry* entry) const {
  if (door == Door::local) return Caller{"local", true, request.request_id};
  if (entry && entry->spec->access == Access::open) return Caller{"anyone", false, request.request_id};
  if (entry && entry->spec->access == Access::token) return Caller{"token", false, request.request_id};
  return keys_.identify(request.headers, request.request_id);
}

Task<http::Response> Api::respond(http::Request& request, const Entry& entry, Call call) {
  auto door = call.door;
  if (proxy::has_body(request) && entry.spec->body == Body::json && !is_json_type(request.headers.get("Content-Type")))
    co_return problem(415, "GENERAL::UNSUPPORTED_MEDIA_TYPE", "The body must be JSON, sent with Content-Type: application/json.");
  if (proxy::has_body(request)) {
    auto body = co_await request.body->read_all(kMaxJsonBytes);
    if (!body) co_return tell(body.error(), request, door);
    if (entry.spec->body == Body::json) call.body = *std::move(body);
  }
  auto response = co_await entry.spec->answer(context_, std::move(call));
  if (!response) co_return tell(response.error(), request, door);
  co_return *std::move(response);
}

}  // namespace osb::api
