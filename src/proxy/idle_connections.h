// At most one idle connection to the execd of each sandbox, so that the next request saves a connect. A sandbox that is left
// alone costs none: whoever keeps connections calls drop_old() every kMaxIdle while there are any.
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
  void forget(const SandboxId& id);
  void drop_old();
  void clear() { kept_.clear(); }
  std::size_t size() const { return kept_.size(); }

 private:
  struct Kept {
    std::unique_ptr<http::ClientConnection> connection;
    std::int64_t since_nanos = 0;
  };
  std::map<std::string, Kept, std::less<>> kept_;
};

}  // namespace osb::proxy
