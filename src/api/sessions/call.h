// What a handler of the session API gets. A handler parses, calls the service, renders.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/http.h"
#include "http/router.h"
#include "model/caller.h"
#include "proxy/approvals.h"
#include "session/service.h"

namespace osb::api::sessions {

struct Context {
  session::Service& service;
  proxy::Approvals* approvals;
  std::string version = "0";
  std::string runtime = "native";
};

struct Call {
  http::Request& request;
  http::Responder& responder;
  http::Router::Params params;
  Caller caller;
  http::Headers extra;  // fields that every answer of this call carries
  std::string body;     // read already where the route takes JSON

  std::string_view param(std::string_view name) const {
    auto found = params.find(name);
    return found == params.end() ? std::string_view() : std::string_view(found->second);
  }
};

// nullopt: the handler has answered by itself. An error is rendered when nothing was sent yet.
using Reply = Task<Result<std::optional<http::Response>>>;
using Answer = Reply (*)(Context&, Call);

enum class Body : std::uint8_t { none, json, large_json, streamed };

struct RouteSpec {
  std::string_view method;
  std::string_view pattern;  // below /api/v1
  Body body;
  bool open;  // no caller is asked for
  Answer answer;
};

}  // namespace osb::api::sessions
