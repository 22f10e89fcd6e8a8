#include "cli/units.h"

#include <cstdio>

#include "base/text.h"

namespace osb::cli {
namespace {

constexpr std::int64_t kLongest = 100ll * 366 * 86400 * 1000;  // milliseconds

Error bad_duration(std::string_view text) {
  return Error(Errc::invalid_argument, cat("'", text, "' is not a duration")).with_hint("write 90 (seconds), 30m, 1h30m or 2d");
}

std::int64_t unit_millis(std::string_view unit) {
  if (unit == "ms") return 1;
  if (unit == "s") return 1000;
  if (unit == "m") return 60'000;
  if (unit == "h") return 3'600'000;
  if (unit == "d") return 86'400'000;
  return 0;
}

std::string_view take_while(std::string_view& text, bool (*wanted)(char)) {
  std::size_t n = 0;
  while (n < text.size() && wanted(text[n])) ++n;
  auto taken = text.substr(0, n);
  text.remove_prefix(n);
  return taken;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

// "2.5" seconds; three digits after the point are all that count.
std::optional<std::int64_t> plain_seconds(std::string_view text) {
  auto point = text.find('.');
  auto whole = parse_int<std::uint32_t>(text.substr(0, point));
  if (!whole) return std::nullopt;
  std::int64_t millis = std::int64_t{*whole} * 1000;
  if (point == std::string_view::npos) return millis;
  auto digits = std::string(text.substr(point + 1));
  if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  digits.resize(3, '0');
  return millis + parse_int<int>(digits).value_or(0);
}

}  // namespace

Result<Millis> parse_duration(std::string_view text) {
  auto total = plain_seconds(text);
  if (!total) {
    total = 0;
    std::string_view rest = text;
    if (rest.empty()) return bad_duration(text);
    while (!rest.empty()) {
      auto number = parse_int<std::uint32_t>(take_while(rest, is_digit));
      auto unit = unit_millis(take_while(rest, is_letter));
      if (!number || unit == 0) return bad_duration(text);
      *total += std::int64_t{*number} * unit;
      if (*total > kLongest) break;
    }
  }
  if (*total <= 0 || *total > kLongest) return bad_duration(text);
  return Millis(*total);
}

std::string format_duration(std::chrono::seconds span) {
  auto s = span.count() < 0 ? 0 : span.count();
  char out[40];
  if (s < 60)
    std::snprintf(out, sizeof out, "%llds", static_cast<long long>(s));
  else if (s < 3600)
    std::snprintf(out, sizeof out, "%lldm", static_cast<long long>(s / 60));
  else if (s < 86400)
    std::snprintf(out, sizeof out, "%lldh%02lldm", static_cast<long long>(s / 3600), static_cast<long long>(s / 60 % 60));
  else
    std::snprintf(out, sizeof out, "%lldd%02lldh", static_cast<long long>(s / 86400), static_cast<long long>(s / 3600 % 24));
  return out;
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return cat(bytes, " B");
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char out[32];
  std::snprintf(out, sizeof out, value < 10 ? "%.1f %s" : "%.0f %s", value, kUnits[unit]);
  return out;
}

std::string format_when(std::string_view rfc3339, WallTime now) {
  auto time = parse_rfc3339(rfc3339);
  if (!time) return "-";
  auto seconds = std::chrono::seconds((time->micros - now.micros) / 1'000'000);
  if (time->micros >= now.micros) return cat("in ", format_duration(seconds));
  return cat(format_duration(-seconds), " ago");
}

}  // namespace osb::cli
