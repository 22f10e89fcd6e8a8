// Every path of the session API, one line each.
#pragma once
#include <span>

#include "api/sessions/call.h"

namespace osb::api::sessions {

inline constexpr std::string_view kMount = "/api/v1";
std::span<const RouteSpec> routes();

}  // namespace osb::api::sessions
