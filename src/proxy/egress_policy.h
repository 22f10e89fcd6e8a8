// Port 18080 of every sandbox: the egress API as it holds while sandboxes have no network. Text errors, as clients expect.
#pragma once
#include <string_view>

#include "http/http.h"

namespace osb::proxy {

inline constexpr std::size_t kPolicyBodyBytes = 1024 * 1024;

// The one answer that needs no token.
bool is_egress_health(std::string_view method, std::string_view path);
http::Response egress_answer(std::string_view method, std::string_view path, std::string_view body);

}  // namespace osb::proxy
