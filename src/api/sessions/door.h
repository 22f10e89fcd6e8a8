// The session API behind its own listener: finds the route, keeps strangers' pages out, names the caller, reads the body, calls
// the handler, renders what comes back. spec/sessions.yaml is its contract.
#pragma once
#include <string>
#include <vector>

#include "api/auth.h"
#include "api/request_count.h"
#include "api/sessions/call.h"
#include "api/sessions/visitors.h"
#include "http/http.h"
#include "http/router.h"

namespace osb::api::sessions {

class SessionDoor {
 public:
  SessionDoor(Context context, Keys keys, DoorRules rules, std::size_t max_requests_per_key);

  http::Handler handler();
  void set_keys(Keys keys) { keys_ = std::move(keys); }
  void set_rules(DoorRules rules) { rules_ = std::move(rules); }
  void set_max_requests_per_key(std::size_t most) { requests_.set_most(most); }

 private:
  Task<void> serve(http::Request& request, http::Responder& responder);
  Task<void> serve_rpc(http::Request& request, http::Responder& responder, http::Headers extra);
  Reply respond(http::Request& request, http::Responder& responder, http::Headers extra);
  http::Response preflight(const http::Request& request) const;

  Context context_;
  Keys keys_;
  DoorRules rules_;
  RequestCount requests_;
  http::Router router_;  // in the order of routes()
};

}  // namespace osb::api::sessions
