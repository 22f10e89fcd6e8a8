// The socket on which opensandbox-grpc passes calls on. It gives no rights: every call shows a key, and counts against it.
#pragma once
#include "api/auth.h"
#include "api/connect/door.h"
#include "api/request_count.h"

namespace osb::api::connect {

class RelayDoor {
 public:
  RelayDoor(session::Service& service, Keys keys, std::size_t max_requests_per_key)
      : service_(service), keys_(std::move(keys)), requests_(max_requests_per_key) {}

  http::Handler handler();
  void set_keys(Keys keys) { keys_ = std::move(keys); }
  void set_max_requests_per_key(std::size_t most) { requests_.set_most(most); }

 private:
  Task<void> serve(http::Request& request, http::Responder& responder);

  session::Service& service_;
  Keys keys_;
  RequestCount requests_;
};

// For callers that have as many calls under way as they may.
Error too_many_calls();

}  // namespace osb::api::connect
