// The table of the lifecycle API: one line a route.
#pragma once
#include <span>

#include "api/call.h"

namespace osb::api::v1 {

std::span<const RouteSpec> routes();

}  // namespace osb::api::v1
