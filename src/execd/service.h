// Service: the table of routes, behind the access token.
#pragma once
#include "execd/sandbox.h"
#include "http/router.h"

namespace osb::execd {

class Service {
 public:
  // The sandbox outlives the service.
  explicit Service(Sandbox& sandbox);
  Task<void> handle(http::Request& request, http::Responder& responder);

 private:
  bool admits(const http::Request& request) const;

  Sandbox& sandbox_;
  http::Router routes_;
};

// "/proxy/44772/x" is "/x" of execd itself: clients reach it through its own proxy path.
void strip_own_proxy_path(http::Request& request);

}  // namespace osb::execd
