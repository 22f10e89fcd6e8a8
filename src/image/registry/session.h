// A conversation with one registry about one repository: scheme, tokens, redirects, and what its answers mean.
//
// Credentials go to the registry's own origin and to its token service, and nowhere else: not along a redirect, not into
// an error, not into a log. Safe to use from several threads.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "image/registry/exchange.h"
#include "image/registry/remote_name.h"

namespace osb::image::registry {

class Session {
 public:
  Session(RemoteName name, RegistryAuth auth, Registries registries, std::shared_ptr<Trust> trust, std::stop_token stop);

  // Asks /v2/ and settles how the registry is reached: https, or http where that is allowed.
  Result<> open();

  struct Ask {
    std::string path;         // behind "/v2/<repository>/"
    std::string accept = {};  // media types
    std::uint64_t from = 0;   // first byte wanted
  };
  // The answer: 200, or 206 when `from` is not 0 and the registry can do that. Everything else is an error.
  Result<std::unique_ptr<Exchange>> get(const Ask& ask);

  const RemoteName& name() const { return name_; }
  // Stopped when the caller's token is, or by cancel(): one layer that fails ends the wait for the others.
  const std::stop_token& stop() const { return stop_; }
  void cancel() { own_stop_.request_stop(); }

 private:
  Result<> settle(bool tls);
  Result<std::unique_ptr<Exchange>> send(Url url, const Ask& ask, bool with_credentials);
  Result<std::unique_ptr<Exchange>> dial(const Url& url, const http::Headers& headers, bool first);
  Result<> check_hop(const Url& from, const Url& to) const;
  Result<> answer_challenge(const Exchange& refused);
  Result<std::string> fetch_token(const Url& realm, const std::string& service);
  bool may_get_credentials(const Origin& realm) const;
  std::string authorization() const;

  RemoteName name_;
  RegistryAuth auth_;
  Registries registries_;
  std::shared_ptr<Trust> trust_;
  std::stop_source own_stop_;
  std::stop_token stop_ = own_stop_.get_token();
  std::stop_callback<std::function<void()>> link_;
  // A registry that drips for ever must not hold a worker for ever.
  std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::now() + std::chrono::hours(2);
  Origin origin_;
  Reach reach_ = Reach::open;
  mutable std::mutex mutex_;  // over authorization_
  std::string authorization_;
};

// Runs `attempt` again after a pause while it fails for a passing reason (cut, timeout, 5xx); a stop ends the pause.
inline constexpr int kAttempts = 4;
Result<> pause_before(int attempt, const std::stop_token& stop);
bool is_passing(const Error& error);

}  // namespace osb::image::registry
