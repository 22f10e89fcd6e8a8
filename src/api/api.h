// The HTTP API: finds the route, names the caller, checks the body, calls the handler, renders what comes back.
//
// Access is decided after routing, by the route that matched; a path that matches nothing needs a key like any other.
#pragma once
#include <string>
#include <vector>

#include "api/auth.h"
#include "api/call.h"
#include "api/request_count.h"
#include "http/http.h"
#include "http/router.h"

namespace osb::api {

class Api {
 public:
  Api(asio::io_context& io, lifecycle::Service& lifecycle, proxy::Proxy& proxy, image::Store& images, Keys keys, Options options);
  ~Api();

  http::Handler handler(Door door);
  void set_keys(Keys keys) { keys_ = std::move(keys); }
  void set_defaults(CreateDefaults defaults) {
    context_.options.defaults = std::move(defaults);
    context_.creates.clear();
  }
  void set_pull_for_all(bool all) { context_.options.pull_for_all = all; }
  void set_max_requests_per_key(std::size_t most) { requests_.set_most(most); }
  void set_daemon_hooks(DaemonHooks hooks) { context_.daemon = std::move(hooks); }
  void set_tcp_authority(std::string authority) { context_.options.tcp_authority = std::move(authority); }

  struct Entry {
    const RouteSpec* spec;
    std::string pattern;  // with the mount
    std::size_t mount_segments;
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  void mount(const RouteSpec& spec, std::string_view prefix, std::size_t segments);
  Task<void> serve(http::Request& request, http::Responder& responder, Door door);
  Result<Caller> admit(const http::Request& request, Door door, const Entry* entry) const;
  std::string_view payer(const Caller& caller, const Entry* entry, const http::Router::Params& params) const;
  Task<http::Response> respond(http::Request& request, const Entry& entry, Call call);

  Context context_;
  Keys keys_;
  RequestCount requests_;
  http::Router router_;
  std::vector<Entry> entries_;  // same order as the router's table
};

}  // namespace osb::api
