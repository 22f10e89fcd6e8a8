#include "proxy/proxy.h"

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "model/json.h"
#include "proxy/command_request.h"
#include "proxy/egress_policy.h"
#include "proxy/forward.h"
#include "proxy/headers.h"
#include "proxy/metrics.h"
#include "proxy/upload_audit.h"

namespace osb::proxy {
namespace {

constexpr auto kConnectDeadline = std::chrono::seconds(5);
constexpr std::size_t kLanguageAnswerBytes = 16 * 1024;
constexpr std::int64_t kRenewIntervalNanos = 60'000'000'000;
constexpr std::string_view kRenewExtension = "access.renew.extend.seconds";

http::Response no_answer(std::uint16_t port) {
  return http::Response::json(
      502, cat(R"({"code":"GENERAL::UNKNOWN_ERROR","message":"Nothing answers on port )", port, R"( of this sandbox."})"));
}

// Clients ask again until it is there; a conflict would end their patience.
http::Response not_ready(const Sandbox& sandbox) {
  auto response = http::Response::json(
      503, cat(R"({"code":"SANDBOX::NOT_READY","message":"Sandbox )", sandbox.id.text(), R"( is pending: its image is being pulled."})"));
  response.headers.add("Retry-After", "1");
  return response;
}

Error unknown_sandbox(std::string_view id) {
  return Error(Errc::not_found, cat("Sandbox ", id.substr(0, 64), " not found.")).with_code("DOCKER::SANDBOX_NOT_FOUND");
}

// Exactly one field, compared without early exit. An empty expectation matches nothing.
bool carries(const http::Headers& headers, std::string_view name, const std::string& expected) {
  return !expected.empty() && headers.count(name) == 1 && constant_time_equals(headers.get(name), expected);
}

bool is_idempotent(std::string_view method) { return method == "GET" || method == "HEAD" || method == "OPTIONS"; }

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

Result<std::uint16_t> parse_port(std::string_view text) {
  auto port = parse_int<std::uint16_t>(text);
  if (port && *port > 0) return *port;
  return Error(Errc::invalid_argument, "The port must be a number from 1 to 65535.").with_code("DOCKER::INVALID_PORT").at("port");
}

}  // namespace

struct Proxy::Visit {
  http::Request& request;
  http::Responder& responder;
  SandboxId id;
  std::uint16_t port;
  std::string target;
  bool trusted;
  Caller caller;
  bool upgrade;

  // Everything but the body, ready to be sent.
  http::ClientRequest outgoing() const {
    http::ClientRequest out;
    out.method = request.method;
    out.target = target;
    out.headers = request_headers(request, port, upgrade);
    return out;
  }
  ForwardOptions options(Watch* watch) const {
    // execd sends something every few seconds while a command runs; a service of the sandbox may be silent for ever.
    bool lookout = port != kExecdPort && !upgrade && !has_body(request);
    return {.head_request = request.method == "HEAD",
            .upgrade = upgrade,
            .head_with_first = port == kExecdPort,
            .watch_client = lookout,
            .watch = watch};
  }
};

Proxy::Proxy(asio::io_context& io, lifecycle::Service& lifecycle, audit::Log& audit, Tokens tokens)
    : lifecycle_(lifecycle), audit_(audit), tokens_(std::move(tokens)), gate_(io, lifecycle, audit), tasks_(io.get_executor()) {}

Task<Result<>> Proxy::serve(http::Request& request, http::Responder& responder, Route route, Caller caller) {
  auto id = SandboxId::parse(route.id);
  if (!id) co_return unknown_sandbox(route.id);
  CO_TRY(auto port, parse_port(route.port));
  const auto* sandbox = lifecycle_.find(*id);
  if (!sandbox) co_return unknown_sandbox(route.id);
  Visit visit{
      request, responder, *std::move(id), port, std::move(route.target), route.trusted, std::move(caller), wants_upgrade(request.headers)};
  if (auto refusal = check_tokens(visit, *sandbox)) co_return co_await answer(responder, std::move(*refusal));
  if (sandbox->status.state == State::pending) co_return co_await answer(responder, not_ready(*sandbox));
  if (auto running = require_running(*sandbox); !running) co_return std::move(running).error();
  note_access(*sandbox, visit.caller);
  if (port == kEgressPort) co_return co_await answer_egress(visit);
  if (port == kExecdPort) co_return co_await visit_execd(visit);
  co_return co_await visit_port(visit);
}

std::optional<http::Response> Proxy::check_tokens(const Visit& visit, const Sandbox& sandbox) const {
  if (visit.trusted) return std::nullopt;
  const auto& headers = visit.request.headers;
  const auto& id = visit.id;
  if (sandbox.spec.secure_access && !carries(headers, kAccessTokenHeader, tokens_.access(id)))
    return http::Response::json(401, R"({"code":"SANDBOX::UNAUTHORIZED","message":"invalid or missing header OpenSandbox-Secure-Access"})");
  if (visit.port == kExecdPort && !carries(headers, kExecdTokenHeader, tokens_.execd(id)))
    return http::Response::json(401, R"({"error":"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN"})");
  bool open = is_egress_health(visit.request.method, path_of(visit.target));
  if (visit.port == kEgressPort && !open && !carries(headers, kEgressTokenHeader, tokens_.egress(id)))
    return http::Response::text(401, "unauthorized\n");
  return std::nullopt;
}

// A frozen execd would accept a connection and never answer; saying so at once is what makes it look unhealthy.
Result<> Proxy::require_running(const Sandbox& sandbox) const {
  if (sandbox.status.state == State::running) return Ok{};
  auto error = Error(Errc::conflict, cat("Sandbox ", sandbox.id.text(), " is ", to_lower(name_of(sandbox.status.state)), "."))
                   .with_code("DOCKER::SANDBOX_NOT_RUNNING");
  if (sandbox.status.state == State::paused) return std::move(error).with_hint("Resume the sandbox first.");
  return error;
}

Task<Result<>> Proxy::answer_egress(Visit& visit) {
  std::string body;
  if (has_body(visit.request)) {
    CO_TRY(body, co_await visit.request.body->read_all(kPolicyBodyBytes));
  }
  co_return co_await answer(visit.responder, egress_answer(visit.request.method, path_of(visit.target), body));
}

Task<Result<>> Proxy::visit_execd(Visit& visit) {
  if (commands_.leads_back(path_of(visit.target))) co_return Error(Errc::permission_denied, "execd is not reached through itself.");
  if (lifecycle_.runtime().capabilities().measures) {
    auto metrics = metrics_route(visit.request.method, path_of(visit.target));
    if (metrics == MetricsRoute::once) co_return co_await answer_metrics(lifecycle_, visit.id, visit.responder);
    if (metrics == MetricsRoute::watch) co_return co_await watch_metrics(lifecycle_, visit.id, visit.responder);
  }
  auto outgoing = visit.outgoing();
  auto kind = commands_.find(outgoing.method, path_of(outgoing.target));
  if (has_body(visit.request)) {
    if (kind) {
      CO_TRY(outgoing.body, co_await visit.request.body->read_all(kCommandBodyBytes));
    } else {
      outgoing.body_source = visit.request.body;
    }
  }
  std::optional<CommandRecord> record;
  if (kind) {
    Asking asking;
    asking.client = &visit.responder;
    CO_TRY(record, co_await admit_command(visit.id, *kind, outgoing.target, outgoing.body, visit.caller, std::move(asking)));
  }
  std::optional<UploadRecord> upload;
  if (outgoing.body_source && UploadRecord::is_upload(visit.request.method, path_of(visit.target))) {
    upload.emplace(audit_, visit.caller, visit.id, *visit.request.body, visit.request.headers.get("Content-Type"));
    if (auto begun = upload->start(); !begun)
      co_return std::move(begun).error().in("record upload").with_code("GENERAL::AUDIT_UNAVAILABLE");
    outgoing.body_source = &*upload;
  }
  auto status = co_await exchange_with_execd(visit, std::move(outgoing), record ? record->watch() : nullptr);
  if (record) record->finish(status ? *status : 0);
  if (upload) upload->finish(status ? *status : 0);
  if (status || visit.responder.started()) co_return Ok{};
  log::debug("execd does not answer", {{"sandbox", visit.id.text()}, {"error", status.error().what()}});
  co_return co_await answer(visit.responder, no_answer(visit.port));
}

Task<Result<std::optional<CommandRecord>>> Proxy::admit_command(SandboxId id, CommandRoutes::Kind kind, std::string_view target,
                                                                std::string_view body, Caller caller, Asking asking) {
  if (kind.judged != CommandRoutes::Judged::nothing && gate_.judges(id)) {
    auto passed = co_await pass_gate(id, kind.judged, body, caller, std::move(asking));
    if (!passed) co_return std::move(passed).error();
  }
  if (kind.action.empty()) co_return std::optional<CommandRecord>();
  auto started = CommandRecord::start(audit_, std::move(caller), id, kind, target, body);
  if (!started) co_return std::move(started).error().in("record command").with_code("GENERAL::AUDIT_UNAVAILABLE");
  co_return std::optional(*std::move(started));
}

Task<Result<>> Proxy::pass_gate(SandboxId id, CommandRoutes::Judged judged, std::string_view body, Caller caller, Asking asking) {
  auto command = command_of(judged, body);
  if (judged == CommandRoutes::Judged::code && command.language.empty()) command.language = co_await context_language(id, context_of(body));
  // Whoever made the terminal was asked then; only a refusal since is new.
  if (judged == CommandRoutes::Judged::attach) asking.only_refuse = true;
  CO_TRY([[maybe_unused]] auto verdict, co_await gate_.pass(std::move(caller), id, std::move(command), std::move(asking)));
  co_return Ok{};
}

// The language of a context as execd has it; "" when it does not say.
Task<std::string> Proxy::context_language(SandboxId id, std::string context) {
  http::ClientRequest request;
  request.target = cat("/code/contexts/", http::percent_encode(context));
  auto answer = co_await http::fetch(lifecycle_.runtime().execd(id), std::move(request), kConnectDeadline, kLanguageAnswerBytes);
  if (!answer || answer->status != 200) co_return std::string();
  auto object = parse_json_object(answer->body);
  const auto* language = object ? object->if_contains("language") : nullptr;
  co_return language && language->is_string() ? std::string(language->get_string()) : std::string();
}

Task<Result<int>> Proxy::exchange_with_execd(Visit& visit, http::ClientRequest outgoing, Watch* watch) {
  const auto& id = visit.id;
  auto connection = idle_.take(id);
  // A kept connection may have died unnoticed; only what can be repeated without harm is tried again.
  bool may_repeat = connection && !outgoing.body_source && is_idempotent(outgoing.method);
  http::ClientRequest again;
  if (may_repeat) again = outgoing;
  if (!connection) {
    CO_TRY(connection, co_await http::connect(lifecycle_.runtime().execd(id), kConnectDeadline));
  }
  auto status = co_await forward(*connection, std::move(outgoing), visit.responder, visit.options(watch));
  if (!status && may_repeat && !visit.responder.started()) {
    CO_TRY(connection, co_await http::connect(lifecycle_.runtime().execd(id), kConnectDeadline));
    status = co_await forward(*connection, std::move(again), visit.responder, visit.options(watch));
  }
  if (status && *status != 101 && connection->reusable()) keep_idle(id, std::move(connection));
  co_return status;
}

void Proxy::keep_idle(const SandboxId& id, std::unique_ptr<http::ClientConnection> connection) {
  idle_.keep(id, std::move(connection));
  sweep_later();
}

void Proxy::sweep_later() {
  if (!std::exchange(sweeping_, true)) tasks_.spawn("sweep idle connections", sweep_idle());
}

// Ends with the last connection: nothing ticks while sandboxes are idle.
Task<void> Proxy::sweep_idle() {
  while (idle_.size() > 0) {
    co_await sleep_for(IdleConnections::kMaxIdle);
    auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) co_return;
    idle_.drop_old();
  }
  sweeping_ = false;
}

void Proxy::spare_ready(const SandboxId& id) {
  if (!stopping_) tasks_.spawn("connect to a spare sandbox", connect_ahead(id));
}

void Proxy::spare_taken(const SandboxId& id) {
  if (idle_.start_clock(id)) sweep_later();
}

// Nobody waits for it: where it fails the first request connects.
Task<void> Proxy::connect_ahead(SandboxId id) {
  auto connected = co_await http::connect(lifecycle_.runtime().execd(id), kConnectDeadline);
  if (!connected) co_return;
  if (lifecycle_.spares().holds(id)) co_return idle_.keep_ahead(id, *std::move(connected));
  if (lifecycle_.find(id) != nullptr) keep_idle(id, *std::move(connected));
}

Task<Result<>> Proxy::visit_port(Visit& visit) {
  auto connection = co_await lifecycle_.runtime().dial(visit.id, visit.port);
  if (!connection && connection.error().kind() == Errc::unsupported) co_return std::move(connection).error();
  if (!connection) co_return co_await answer(visit.responder, no_answer(visit.port));
  auto outgoing = visit.outgoing();
  if (has_body(visit.request)) outgoing.body_source = visit.request.body;
  auto status = co_await forward(**connection, std::move(outgoing), visit.responder, visit.options(nullptr));
  if (status || visit.responder.started()) co_return Ok{};
  co_return co_await answer(visit.responder, no_answer(visit.port));
}

void Proxy::note_access(const Sandbox& sandbox, const Caller& caller) {
  auto extension = sandbox.spec.extensions.find(kRenewExtension);
  if (extension == sandbox.spec.extensions.end() || !sandbox.expires_at) return;
  auto seconds = parse_int<std::int64_t>(extension->second);
  if (!seconds || *seconds <= 0) return;
  auto now = boot_now_nanos();
  auto& last = renewed_nanos_[sandbox.id.text()];
  if (last != 0 && now - last < kRenewIntervalNanos) return;
  last = now;
  WallTime until{wall_now().micros + *seconds * 1'000'000};
  if (until <= *sandbox.expires_at) return;
  Caller renewer{"renew-on-access", true, caller.request_id};
  tasks_.spawn("renew on access", renew(sandbox.id, until, std::move(renewer)));
}

Task<void> Proxy::renew(SandboxId id, WallTime until, Caller caller) {
  auto name = id.text();
  auto renewed = co_await lifecycle_.renew(std::move(id), until, std::move(caller));
  if (!renewed) log::warn("renew on access failed", {{"sandbox", name}, {"error", renewed.error().what()}});
}

void Proxy::forget(const SandboxId& id) {
  gate_.forget(id);
  idle_.forget(id);
  renewed_nanos_.erase(id.text());
}

Task<void> Proxy::stop() {
  stopping_ = true;
  gate_.stop();
  idle_.clear();
  co_await tasks_.stop();
}

}  // namespace osb::proxy
