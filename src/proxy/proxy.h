// The way into a sandbox: /sandboxes/{id}/proxy/{port}/... for every method, streams and upgrades.
//
// The target is looked up by id and dialled inside that sandbox; no address of a client is ever used. Port 44772 is
// execd and 18080 the egress API, each behind its token; other ports belong to the sandbox's own services.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "async/task_group.h"
#include "audit/audit.h"
#include "http/http.h"
#include "lifecycle/service.h"
#include "model/caller.h"
#include "proxy/command_audit.h"
#include "proxy/command_gate.h"
#include "proxy/exchange.h"
#include "proxy/idle_connections.h"
#include "proxy/tokens.h"

namespace osb::proxy {

struct Route {
  std::string id;
  std::string port;
  std::string target;    // path and query for the backend, beginning with '/'
  bool trusted = false;  // came through the door whose key is a file permission: tokens are not asked for
};

class Proxy {
 public:
  Proxy(asio::io_context& io, lifecycle::Service& lifecycle, audit::Log& audit, Tokens tokens);

  // Answers the request. An error comes back only while nothing was sent, for the caller to render.
  Task<Result<>> serve(http::Request& request, http::Responder& responder, Route route, Caller caller);
  // A request of our own to the execd of a sandbox that runs: on record and on the same connections as a client's. The path
  // is execd's. The proxy outlives the exchange.
  Task<Result<std::unique_ptr<Exchange>>> ask_execd(SandboxId id, http::ClientRequest request, Caller caller, Asking asking = {});
  void forget(const SandboxId& id);  // the sandbox ended: drop what is kept for it
  // A sandbox made ahead of time gets the connection for its first request ahead of time too; execd takes it up once it is claimed.
  void spare_ready(const SandboxId& id);
  void spare_taken(const SandboxId& id);
  Task<void> stop();

  const Tokens& tokens() const { return tokens_; }
  CommandGate& gate() { return gate_; }  // for whoever runs commands by another way than serve()
  std::size_t idle_connections() const { return idle_.size(); }
  std::size_t connections_ahead() const { return idle_.ahead(); }

 private:
  friend class Exchange;
  struct Visit;  // one request on its way
  // The one place every command passes before it reaches a sandbox, whichever door it came through. nullopt: judged, not recorded.
  Task<Result<std::optional<CommandRecord>>> admit_command(SandboxId id, CommandRoutes::Kind kind, std::string_view target,
                                                           std::string_view body, Caller caller, Asking asking = {});
  std::optional<http::Response> check_tokens(const Visit& visit, const Sandbox& sandbox) const;
  Task<Result<>> answer_egress(Visit& visit);
  Task<Result<>> visit_execd(Visit& visit);
  Task<Result<>> pass_gate(SandboxId id, CommandRoutes::Judged judged, std::string_view body, Caller caller, Asking asking);
  Task<std::string> context_language(SandboxId id, std::string context);
  Task<Result<>> visit_port(Visit& visit);
  Task<Result<http::ClientConnection::Head>> start_exchange(const SandboxId& id, http::ClientRequest outgoing,
                                                            std::unique_ptr<http::ClientConnection>& connection);
  Task<Result<int>> exchange_with_execd(Visit& visit, http::ClientRequest outgoing, Watch* watch);
  Result<> require_running(const Sandbox& sandbox) const;
  void note_access(const Sandbox& sandbox, const Caller& caller);
  void keep_idle(const SandboxId& id, std::unique_ptr<http::ClientConnection> connection);
  void sweep_later();
  Task<void> sweep_idle();
  Task<void> connect_ahead(SandboxId id);
  Task<void> renew(SandboxId id, WallTime until, Caller caller);

  lifecycle::Service& lifecycle_;
  audit::Log& audit_;
  Tokens tokens_;
  CommandRoutes commands_;
  CommandGate gate_;
  IdleConnections idle_;
  bool sweeping_ = false;
  bool stopping_ = false;
  std::map<std::string, std::int64_t, std::less<>> renewed_nanos_;
  TaskGroup tasks_;
};

}  // namespace osb::proxy
