// The version the daemon says it has.
#pragma once
#include <string_view>

namespace osb::daemon {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace osb::daemon
