#include <algorithm>

#include "api/json_text.h"
#include "api/v1/handlers.h"
#include "api/v1/query.h"

namespace osb::api::v1 {
namespace {

// What a client can have meant as authority of the server; anything else is not put into an answer.
bool is_authority(std::string_view text) {
  auto fine = [](char c) {
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || std::string_view(".-_:[]").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= 255 && std::all_of(text.begin(), text.end(), fine);
}

// The server's name as the client knows it: configured, else as it was called, else where it listens.
std::string_view authority(const Options& options, const Call& call) {
  if (!options.public_host.empty()) return options.public_host;
  auto host = call.request.headers.get("Host");
  if (call.door == Door::tcp && is_authority(host)) return host;
  return options.tcp_authority;
}

Result<std::uint16_t> parse_port(std::string_view text) {
  auto number = parse_int<std::int64_t>(text);
  if (!number) return Error(Errc::malformed, "The port must be a number.").at("port");
  if (*number >= 1 && *number <= 65535) return static_cast<std::uint16_t>(*number);
  return Error(Errc::invalid_argument, "The port must be from 1 to 65535.").with_code("DOCKER::INVALID_PORT").at("port");
}

Result<> refuse_signed(const EndpointQuery& query) {
  if (!query.expires) return Ok{};
  if (query.use_server_proxy)
    return Error(Errc::invalid_argument, "use_server_proxy and expires exclude each other.")
        .with_code("SANDBOX::INVALID_PARAMETER")
        .at("expires");
  return Error(Errc::invalid_argument, "Signed endpoints are not available.").with_code("SANDBOX::API_NOT_SUPPORTED").at("expires");
}

// The fields a client has to send on every request to this port.
std::string endpoint_headers(const proxy::Tokens& tokens, const Sandbox& sandbox, std::uint16_t port) {
  ObjectText headers;
  if (port == proxy::kExecdPort) headers.add(proxy::kExecdTokenHeader, tokens.execd(sandbox.id));
  if (port == proxy::kEgressPort) headers.add(proxy::kEgressTokenHeader, tokens.egress(sandbox.id));
  if (sandbox.spec.secure_access) headers.add(proxy::kAccessTokenHeader, tokens.access(sandbox.id));
  return std::move(headers).done();
}

// The raw path behind the port, as the client spelled it: what a path means in there is decided in there.
std::string_view path_behind(std::string_view path, std::size_t segments) {
  for (std::size_t i = 0; i < segments; ++i) {
    auto next = path.find('/', 1);
    if (next == std::string_view::npos) return "/";
    path.remove_prefix(next);
  }
  return path;
}

}  // namespace

Reply get_endpoint(Context& context, Call call) {
  CO_TRY(auto query, parse_endpoint_query(call.request.query));
  CO_TRY(auto port, parse_port(call.param("port")));
  CO_TRY(auto id, sandbox_id(call));
  CO_TRY(const auto* sandbox, context.lifecycle.look_at(id, call.caller));
  CO_TRY([[maybe_unused]] auto allowed, refuse_signed(query));
  ObjectText text;
  text.add("endpoint", cat(authority(context.options, call), "/sandboxes/", id.text(), "/proxy/", port));
  auto headers = endpoint_headers(context.proxy.tokens(), *sandbox, port);
  if (headers != "{}") text.raw("headers", headers);
  co_return http::Response::json(200, std::move(text).done());
}

Task<Result<>> proxy_request(Context& context, Call call, http::Responder& responder) {
  constexpr std::size_t kOwnSegments = 4;  // sandboxes, {id}, proxy, {port}
  proxy::Route route{std::string(call.param("id")), std::string(call.param("port")), {}, call.door == Door::local};
  route.target = path_behind(call.request.path, call.mount_segments + kOwnSegments);
  if (!call.request.query.empty()) route.target += cat("?", call.request.query);
  co_return co_await context.proxy.serve(call.request, responder, std::move(route), std::move(call.caller));
}

}  // namespace osb::api::v1
