#include "execd/service.h"

#include "base/text.h"
#include "execd/command_routes.h"
#include "execd/exec_route.h"
#include "execd/files/routes.h"
#include "execd/kernels/routes.h"
#include "execd/metrics/routes.h"
#include "execd/proxy_route.h"
#include "execd/pty/routes.h"
#include "execd/replies.h"
#include "execd/runs/routes.h"
#include "execd/shell/routes.h"

namespace osb::execd {
namespace {

using http::Request;
using http::Responder;
using Params = http::Router::Params;

std::string param(const Params& params, std::string_view name) { return params.find(name)->second; }

// Read on with ?cursor=, as with the logs of a background command.
Task<void> entrypoint_logs(Sandbox& sandbox, Request& request, Responder& responder) {
  auto cursor = parse_int<std::uint64_t>(query_value(request, "cursor")).value_or(0);
  auto response = http::Response::text(200, sandbox.entrypoint_output.read_from(cursor));
  response.headers.add("EXECD-COMMANDS-TAIL-CURSOR", cat(sandbox.entrypoint_output.end()));
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
}

// The rest of the target behind "/proxy/{port}", as the client sent it.
std::string rest_of_target(const Request& request) {
  auto slash = request.path.find('/', std::string_view("/proxy/").size());
  std::string rest = slash == std::string::npos ? "/" : request.path.substr(slash);
  return request.query.empty() ? rest : cat(rest, "?", request.query);
}

Task<void> proxy(std::string port_text, Request& request, Responder& responder) {
  auto port = parse_int<std::uint16_t>(port_text);
  if (port && *port > 0) co_return co_await forward_to_port(*port, rest_of_target(request), request, responder);
  auto response = http::Response::text(400, "the port must be a number from 1 to 65535\n");
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
}

void add_routes(http::Router& routes, Sandbox& sandbox) {
  auto& s = sandbox;
  routes.add("GET", "/ping", [](Request&, Responder& r, const Params&) { return reply_empty(r); });
  routes.add("POST", "/command", [&s](Request& q, Responder& r, const Params&) { return run_command(s, q, r); });
  routes.add("DELETE", "/command", [&s](Request& q, Responder& r, const Params&) { return interrupt_command(s, q, r); });
  routes.add("DELETE", "/code", [&s](Request& q, Responder& r, const Params&) { return interrupt_command(s, q, r); });
  routes.add("GET", "/command/status/{id}", [&s](Request&, Responder& r, const Params& p) { return command_status(s, param(p, "id"), r); });
  routes.add("GET", "/command/{id}/logs",
             [&s](Request& q, Responder& r, const Params& p) { return command_logs(s, param(p, "id"), q, r); });
  routes.add("POST", "/osb/v1/exec", [&s](Request& q, Responder& r, const Params&) { return run_exec(s, q, r); });
  add_pty_routes(routes, sandbox);
  routes.add("GET", "/osb/v1/entrypoint/logs", [&s](Request& q, Responder& r, const Params&) { return entrypoint_logs(s, q, r); });
  add_run_routes(routes, sandbox);
  add_code_routes(routes, sandbox);
  add_session_routes(routes, sandbox);
  add_files_routes(routes, s);
  routes.add("*", "/proxy/{port}/{rest*}", [](Request& q, Responder& r, const Params& p) { return proxy(param(p, "port"), q, r); });
  routes.add("*", "/proxy/{port}", [](Request& q, Responder& r, const Params& p) { return proxy(param(p, "port"), q, r); });
}

Task<void> unauthorized(Responder& responder) {
  auto response = http::Response::json(401, R"({"error":"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN"})");
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
}

}  // namespace

void strip_own_proxy_path(Request& request) {
  const std::string own = cat("/proxy/", kPort);
  std::string_view path = request.path;
  while (path.starts_with(own) && (path.size() == own.size() || path[own.size()] == '/')) path.remove_prefix(own.size());
  if (path.size() == request.path.size()) return;
  request.path = path.empty() ? "/" : std::string(path);
  request.target = request.query.empty() ? request.path : cat(request.path, "?", request.query);
}

Service::Service(Sandbox& sandbox) : sandbox_(sandbox) {
  add_routes(routes_, sandbox);
  add_metrics_routes(routes_, sandbox);
}

bool Service::admits(const Request& request) const {
  const std::string& token = sandbox_.setup.access_token;
  return token.empty() || constant_time_equals(request.headers.get("X-EXECD-ACCESS-TOKEN"), token);
}

Task<void> Service::handle(Request& request, Responder& responder) {
  if (!admits(request)) co_return co_await unauthorized(responder);
  strip_own_proxy_path(request);
  auto match = routes_.find(request.method, request.path);
  if (match.route) co_return co_await match.route->handler(request, responder, match.params);
  if (request.path.starts_with("/proxy/")) co_return co_await proxy("", request, responder);  // an empty port is no segment
  if (match.path_known) co_return co_await reply_error(responder, 405, "INVALID_REQUEST_BODY", "this path does not take that method");
  co_await reply_error(responder, 404, "UNKNOWN", "no such path");
}

}  // namespace osb::execd
