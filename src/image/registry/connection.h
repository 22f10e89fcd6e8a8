// One blocking connection to a registry, plain or TLS. For worker threads: every wait is short-sliced, so that a stop is
// seen within a fifth of a second, and a peer that makes no progress for the stall time is given up.
#pragma once
#include <chrono>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "image/registry/access.h"
#include "image/registry/url.h"

struct ssl_st;
struct ssl_ctx_st;

namespace osb::image::registry {

// Certificates are checked against the system's CAs (and the operator's extra file) and against the host's name.
class Trust {
 public:
  static Result<std::shared_ptr<Trust>> load(const std::string& ca_file);  // "" = the system's alone
  ssl_ctx_st* context() const { return context_.get(); }

 private:
  explicit Trust(ssl_ctx_st* context);
  std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)> context_;
};

struct DialOptions {
  const Registries& registries;
  const Trust& trust;
  Reach from = Reach::open;  // where the registry was reached; only read for hosts after the first
  bool first = true;
  std::stop_token stop;
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();  // of the whole pull
  std::chrono::milliseconds connect{10'000};                                                   // each address
  std::chrono::milliseconds stall{30'000};
};

class Connection {
 public:
  // Resolves, checks every address before it is dialled (so a name cannot change its mind in between), connects.
  static Result<std::unique_ptr<Connection>> open(const Origin& origin, const DialOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result<> write(std::string_view bytes);
  Result<std::size_t> read(std::span<char> into);  // 0 = end
  Reach reach() const { return reach_; }

 private:
  Connection(Fd fd, Reach reach, const DialOptions& options);
  Result<> start_tls(const Origin& origin, const Trust& trust);
  Result<> wait(short events);
  Result<> wait_tls(int outcome, std::string_view doing);

  Fd fd_;
  Reach reach_;
  std::stop_token stop_;
  std::chrono::milliseconds stall_;
  std::chrono::steady_clock::time_point until_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_;
};

}  // namespace osb::image::registry
