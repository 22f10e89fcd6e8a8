// Time: wall time for people and the wire, boot time for deadlines (it never jumps and counts suspend).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace osb {

// Microseconds since the Unix epoch; the precision every timestamp on the wire keeps.
struct WallTime {
  std::int64_t micros = 0;
  auto operator<=>(const WallTime&) const = default;
};

WallTime wall_now();
std::int64_t wall_now_millis();
std::int64_t boot_now_nanos();  // CLOCK_BOOTTIME

std::string format_rfc3339(WallTime t);  // "2026-01-02T03:04:05.678901Z", always six digits and Z
// RFC 3339 with any offset; a timestamp without offset is read as UTC. Years 1970..9999 only.
std::optional<WallTime> parse_rfc3339(std::string_view text);

}  // namespace osb
