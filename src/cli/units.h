// Durations and sizes as people type and read them. Sizes that go to the daemon are checked by model/quantity.h.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace osb::cli {

using Millis = std::chrono::milliseconds;

// "90" and "2.5" are seconds; "30m", "1h30m45s", "2d", "500ms" are what they say. Zero, negative, and more than a
// century are errors: a number at the edge never means "for ever".
Result<Millis> parse_duration(std::string_view text);

std::string format_duration(std::chrono::seconds span);  // "45s", "12m", "3h05m", "2d04h": two units at most
std::string format_bytes(std::uint64_t bytes);           // "512 B", "1.5 MiB"
// "12m ago", "in 3h05m"; "-" for a text that is no time.
std::string format_when(std::string_view rfc3339, WallTime now);

}  // namespace osb::cli
