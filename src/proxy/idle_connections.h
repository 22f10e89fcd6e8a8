// At most one idle connection to the execd of each sandbox, so that the next request saves a connect. A sandbox that is left
// alone costs none: whoever keeps connections calls drop_old() every kMaxIdle while there are any.
//
// One that is kept ahead leads to a sandbox that is nobody's yet. It does not grow old: it waits in the listener's queue until execd
// knows whose it is, and only then does the clock run.
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "base/id.h"
#include "http/http.h"

namespace osb::proxy {

class IdleConnections {
 public:
  // Well below the time after which execd closes an idle connection itself: a request is never written into a closing one.
  static constexpr std::chrono::seconds kMaxIdle{30};

  std::unique_ptr<http::ClientConnection> take(const SandboxId& id);  // null when there is none young enough
  void keep(const SandboxId& id, std::unique_ptr<http::ClientConnection> connection);
  void keep_ahead(const SandboxId& id, std::unique_ptr<http::ClientConnection> connection);
  bool start_clock(const SandboxId& id);  // what was kept ahead is kept from now on like any other; false when there is none
  void forget(const SandboxId& id);
  void drop_old();
  void clear();
  std::size_t size() const { return kept_.size(); }
  std::size_t ahead() const { return ahead_.size(); }

 private:
  struct Kept {
    std::unique_ptr<http::ClientConnection> connection;
    std::int64_t since_nanos = 0;
  };
  std::map<std::string, Kept, std::less<>> kept_;
  std::map<std::string, Kept, std::less<>> ahead_;
};

}  // namespace osb::proxy
