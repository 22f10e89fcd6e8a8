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
  void forget(const SandboxId& id);  // the sandbox ended: drop what is kept for it
  Task<void> stop();

  const Tokens& tokens() const { return tokens_; }
  std::size_t idle_connections() const { return idle_.size(); }

 private:
  struct Visit;  // one request on its way
  std::optional<http::Response> check_tokens(const Visit& visit) const;
  Task<Result<>> answer_egress(Visit& visit);
  Task<Result<>> visit_execd(Visit& visit);
  Task<Result<>> visit_port(Visit& visit);
  Task<Result<int>> exchange_with_execd(Visit& visit, http::ClientRequest outgoing, Watch* watch);
  Result<> require_running(const Sandbox& sandbox) const;
  void note_access(const Sandbox& sandbox, const Caller& caller);
  void keep_idle(const SandboxId& id, std::unique_ptr<http::ClientConnection> connection);
  Task<void> sweep_idle();
  Task<void> renew(SandboxId id, WallTime until, Caller caller);

  lifecycle::Service& lifecycle_;
  audit::Log& audit_;
  Tokens tokens_;
  CommandRoutes commands_;
  IdleConnections idle_;
  bool sweeping_ = false;
  std::map<std::string, std::int64_t, std::less<>> renewed_nanos_;
  TaskGroup tasks_;
};

}  // namespace osb::proxy
