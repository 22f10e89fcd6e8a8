// Who may come in through the session door: a key, or a program of a user who needs none; and never a page of a stranger.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/auth.h"
#include "http/http.h"

namespace osb::api::sessions {

struct DoorRules {
  bool loopback = true;  // where it listens; elsewhere nobody comes in without a key
  bool require_key = false;
  std::set<std::uint32_t> users_without_key;  // uids: root, the daemon's own, those of the configuration
  std::vector<std::string> allowed_origins;   // as browsers send them: "http://localhost:5173"
};

// "localhost", 127.0.0.0/8 and [::1], with any port or none.
bool is_loopback_authority(std::string_view host);

// A page that reaches us under a name of its own (DNS rebinding), or that is not allowed by name, is refused.
Result<> check_browser(const http::Request& request, const DoorRules& rules);

// By key: OPEN-SANDBOX-API-KEY, X-API-Key or Authorization: Bearer. Without any of them by whose socket it is.
Result<Caller> identify(const http::Request& request, const Keys& keys, const DoorRules& rules);

}  // namespace osb::api::sessions
