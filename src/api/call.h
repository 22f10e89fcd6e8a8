// What a handler of the API gets: the services behind it and one call. A handler parses, calls, renders.
#pragma once
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "api/create_memo.h"
#include "async/task.h"
#include "base/result.h"
#include "http/http.h"
#include "http/router.h"
#include "image/image.h"
#include "lifecycle/service.h"
#include "model/caller.h"
#include "model/create_request.h"
#include "proxy/proxy.h"

namespace osb::api {

// tcp: every caller shows a key. local: a unix socket whose file permission is the key.
enum class Door : std::uint8_t { tcp, local };

struct Options {
  CreateDefaults defaults;
  std::string public_host;    // authority in endpoint answers; "" = the Host of the request
  std::string tcp_authority;  // where the TCP door is, for requests without a usable Host
  std::string version = "0";
  bool pull_for_all = true;  // false: only callers that see everything may pull
  std::size_t max_requests_per_key = 2048;
};

// What only the whole daemon knows, as JSON, for the local door. Empty: there is no such daemon (tests).
struct DaemonHooks {
  std::function<std::string()> status;
  std::function<Result<std::string>()> reload;  // reads the configuration again; an error changes nothing
};

struct Context {
  asio::io_context& io;
  lifecycle::Service& lifecycle;
  proxy::Proxy& proxy;
  image::Store& images;
  Options options;
  DaemonHooks daemon = {};
  CreateMemo creates = {};
  asio::thread_pool workers{1};  // for work that would block the loop: image imports
};

struct Call {
  http::Request& request;
  http::Router::Params params;
  Caller caller;
  Door door = Door::tcp;
  std::size_t mount_segments = 0;     // leading segments before the pattern's own: 1 below /v1
  std::string body;                   // read already for routes that take JSON
  http::Responder* client = nullptr;  // for handlers that hold a call back: whether its client is still there

  std::string_view param(std::string_view name) const {
    auto found = params.find(name);
    return found == params.end() ? std::string_view() : std::string_view(found->second);
  }
};

using Reply = Task<Result<http::Response>>;
using Answer = Reply (*)(Context&, Call);
// For answers that stream or switch protocols. An error is rendered when nothing was sent yet.
using StreamAnswer = Task<Result<>> (*)(Context&, Call, http::Responder&);

// Who may call a route. `open`: everybody. `key`: a caller with a key. `token`: the handler checks the sandbox's token.
// `local`: only through the local door; elsewhere the route does not exist.
enum class Access : std::uint8_t { open, key, token, local };
enum class Mount : std::uint8_t { both, v1_only, root_only };
enum class Body : std::uint8_t { ignored, json, streamed };

struct RouteSpec {
  std::string_view method;
  std::string_view pattern;  // without the mount
  Mount mount;
  Access access;
  Body body;
  std::string_view summary;
  Answer answer;
  StreamAnswer stream = nullptr;  // instead of `answer`
};

// The id in the path; anything that is not shaped like one is a sandbox that does not exist.
Result<SandboxId> sandbox_id(const Call& call);

}  // namespace osb::api
