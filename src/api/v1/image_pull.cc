// POST /images/pull: one JSON object a line while layers arrive, the last one {"image":...} or {"error":...}.
#include "api/json_text.h"
#include "api/render.h"
#include "api/v1/handlers.h"
#include "model/json.h"
#include "proxy/headers.h"

namespace osb::api::v1 {
namespace {

constexpr auto kFirstMoments = std::chrono::milliseconds(300);
constexpr auto kInterval = std::chrono::milliseconds(200);

struct PullRequest {
  std::string name;
  image::RegistryAuth auth;
};

Result<std::string> text_member(const boost::json::object& in, std::string_view name, std::string_view field) {
  const auto* value = in.if_contains(name);
  if (value == nullptr || value->is_null()) return std::string();
  if (!value->is_string()) return Error(Errc::malformed, cat(field, " must be a string.")).at(field);
  return std::string(value->get_string());
}

Result<PullRequest> parse_pull(std::string_view body) {
  TRY(auto object, parse_json_object(body));
  PullRequest request;
  TRY(request.name, text_member(object, "name", "name"));
  if (request.name.empty()) return Error(Errc::malformed, "name must say which image.").at("name");
  const auto* auth = object.if_contains("auth");
  if (auth == nullptr || auth->is_null()) return request;
  if (!auth->is_object()) return Error(Errc::malformed, "auth must be an object.").at("auth");
  TRY(request.auth.username, text_member(auth->get_object(), "username", "auth.username"));
  TRY(request.auth.password, text_member(auth->get_object(), "password", "auth.password"));
  bool fine =
      request.auth.username.find(':') == std::string::npos && request.auth.username.size() + request.auth.password.size() <= 16 * 1024;
  if (!fine) return Error(Errc::invalid_argument, "auth: a name has no ':' and neither has more than 16 KiB.").at("auth");
  return request;
}

std::string progress_line(const std::vector<image::LayerProgress>& layers) {
  std::string items = "[";
  for (const auto& layer : layers) {
    ObjectText one;
    one.add("digest", layer.digest).add("state", image::name_of(layer.state)).add("bytes", layer.bytes).add("total", layer.total);
    items += cat(items.size() > 1 ? "," : "", std::move(one).done());
  }
  ObjectText text;
  text.raw("layers", items + "]");
  return std::move(text).done() + "\n";
}

// What went wrong at a registry is about the request, not about us: everybody may read it.
Reader reader_of(const Error& error, Door door) {
  return door == Door::local || error.kind() != Errc::internal ? Reader::local : Reader::remote;
}

std::string last_line(const Result<image::Image>& result, Door door) {
  ObjectText text;
  if (result) text.raw("image", image_json(*result));
  if (!result) text.raw("error", error_json(result.error(), reader_of(result.error(), door)));
  return std::move(text).done() + "\n";
}

}  // namespace

Task<Result<>> pull_image(Context& context, Call call, http::Responder& responder) {
  if (!context.options.pull_for_all && !call.caller.sees_all)
    co_return Error(Errc::permission_denied, "Pulling is switched off on this server (images.pull).");
  // As for every other JSON route: a page of another origin cannot send this type without asking first.
  auto type = to_lower(trim(call.request.headers.get("Content-Type")));
  if (!type.starts_with("application/json"))
    co_return co_await responder.send(
        problem(415, "GENERAL::UNSUPPORTED_MEDIA_TYPE", "The body must be JSON, sent with Content-Type: application/json."));
  std::string body;
  if (proxy::has_body(call.request)) {
    CO_TRY(body, co_await call.request.body->read_all(kMaxJsonBytes));
  }
  CO_TRY(auto request, parse_pull(body));
  CO_TRY([[maybe_unused]] auto pullable, context.images.check_pullable(request.name));
  // A client that hangs up destroys this coroutine and the ticket with it; the last ticket cancels the pull.
  CO_TRY([[maybe_unused]] auto room, context.lifecycle.check_pull_room());
  auto ticket = context.lifecycle.pull_image(request.name, std::move(request.auth));
  co_await ticket->wait(kFirstMoments);
  if (ticket->result() && !*ticket->result()) {
    const auto& error = ticket->result()->error();
    co_return co_await responder.send(render(error, reader_of(error, call.door)));
  }
  http::Headers headers;
  headers.add("Content-Type", "application/x-ndjson");
  auto sent = co_await responder.begin(200, std::move(headers));
  std::string before;
  while (sent && !ticket->result()) {
    auto line = progress_line(ticket->layers());
    if (line != before) sent = co_await responder.chunk(line);
    if (line == before) sent = co_await responder.chunk("\n");  // a client that left is noticed by this
    before = std::move(line);
    if (sent) co_await ticket->wait(kInterval);
  }
  if (!sent) co_return Ok{};
  if (*ticket->result()) context.lifecycle.image_added();
  auto last = cat(progress_line(ticket->layers()), last_line(*ticket->result(), call.door));
  sent = co_await responder.chunk(last);
  if (sent) sent = co_await responder.end();
  co_return Ok{};
}

}  // namespace osb::api::v1
