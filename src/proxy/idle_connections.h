// At most one idle connection to the execd of each sandbox, so that the next request saves a connect.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "base/id.h"
#include "http/http.h"

namespace osb::proxy {

class IdleConnections {
 public:
  std::unique_ptr<http::ClientConnection> take(const SandboxId& id);  // null when there is none young enough
  void keep(const SandboxId& id, std::unique_ptr<http::ClientConnection> connection);
  void forget(const SandboxId& id);
  void clear() { kept_.clear(); }
  std::size_t size() const { return kept_.size(); }

 private:
  struct Kept {
    std::unique_ptr<http::ClientConnection> connection;
    std::int64_t since_nanos = 0;
  };
  void drop_old(std::int64_t now_nanos);
  std::map<std::string, Kept, std::less<>> kept_;
  std::int64_t swept_nanos_ = 0;
};

}  // namespace osb::proxy
