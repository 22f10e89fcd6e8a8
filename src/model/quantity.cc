#include "model/quantity.h"

#include <limits>
#include <optional>

#include "base/text.h"

namespace osb {
namespace {

using Wide = unsigned __int128;
constexpr std::size_t kMaxText = 40;
constexpr std::size_t kMaxFractionDigits = 18;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

Error refuse(std::string_view text, std::string_view why) {
  return {Errc::invalid_argument, cat(json_string(text.substr(0, kMaxText)), " ", why)};
}

// digits [ "." digits ] as an exact fraction: value = units / scale.
struct Decimal {
  Wide units = 0;
  Wide scale = 1;
  std::string_view unit;  // what follows the number
};

Result<Decimal> take_decimal(std::string_view text) {
  if (text.size() > kMaxText) return refuse(text, "is too long for a quantity");
  Decimal out;
  std::size_t at = 0;
  constexpr Wide kTop = std::numeric_limits<std::uint64_t>::max();
  for (; at < text.size() && is_digit(text[at]); ++at) {
    out.units = out.units * 10 + static_cast<Wide>(text[at] - '0');
    if (out.units > kTop) return refuse(text, "is too large");
  }
  if (at == 0) return refuse(text, "is not a number");
  if (at < text.size() && text[at] == '.') {
    std::size_t first = ++at;
    for (; at < text.size() && is_digit(text[at]); ++at) {
      if (at - first == kMaxFractionDigits) return refuse(text, "has too many digits");
      out.units = out.units * 10 + static_cast<Wide>(text[at] - '0');
      out.scale *= 10;
    }
    if (at == first) return refuse(text, "is not a number");
  }
  out.unit = text.substr(at);
  return out;
}

// nullopt = no such unit.
std::optional<std::uint64_t> byte_factor(std::string_view unit) {
  std::string u = to_lower(unit);
  if (u.empty() || u == "b") return 1;
  static constexpr std::string_view kPrefixes = "kmgtpe";
  auto power = kPrefixes.find(u.front());
  std::string_view rest = std::string_view(u).substr(1);
  bool binary = rest == "i" || rest == "ib";
  if (power == std::string_view::npos || !(binary || rest.empty() || rest == "b")) return std::nullopt;
  std::uint64_t factor = 1;
  for (std::size_t i = 0; i <= power; ++i) factor *= binary ? 1024u : 1000u;
  return factor;
}

template <class N>
Result<N> within(Result<N> value, N low, N high, std::string_view text, std::string_view bounds) {
  if (!value) return value;
  if (*value < low || *value > high) return refuse(text, cat("is out of bounds; allowed are ", bounds));
  return value;
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  TRY(auto number, take_decimal(text));
  auto factor = byte_factor(number.unit);
  if (!factor) return refuse(text, "has an unknown unit; use b, k, ki, m, mi, g, gi, t, ti (and kb, kib, ...)");
  // 2^64 * 10^18 * 2^60 does not fit into 128 bits, so the whole part is bounded before the fraction counts.
  Wide whole = number.units / number.scale * *factor;
  Wide rest = number.units % number.scale * *factor / number.scale;
  if (whole + rest > std::numeric_limits<std::uint64_t>::max()) return refuse(text, "is too large");
  auto bytes = static_cast<std::uint64_t>(whole + rest);
  if (bytes == 0) return refuse(text, "is zero; a limit is always set, leave it out for the default");
  return bytes;
}

Result<std::uint32_t> parse_cpu_millis(std::string_view text) {
  TRY(auto number, take_decimal(text));
  bool millis = number.unit == "m";
  if (!millis && !number.unit.empty()) return refuse(text, "has an unknown unit; write cpus as \"0.5\" or \"500m\"");
  Wide scaled = number.units * (millis ? 1 : 1000);
  if (scaled % number.scale != 0) return refuse(text, "is finer than one thousandth of a cpu");
  scaled /= number.scale;
  if (scaled > std::numeric_limits<std::uint32_t>::max()) return refuse(text, "is too large");
  if (scaled == 0) return refuse(text, "is zero; a limit is always set, leave it out for the default");
  return static_cast<std::uint32_t>(scaled);
}

Result<std::uint64_t> parse_memory(std::string_view text) {
  return within(parse_bytes(text), kMinMemoryBytes, kMaxMemoryBytes, text, "16Mi to 1Ti");
}

Result<std::uint64_t> parse_disk(std::string_view text) {
  return within(parse_bytes(text), kMinDiskBytes, kMaxDiskBytes, text, "1Mi to 16Ti");
}

Result<std::uint32_t> parse_cpu(std::string_view text) {
  return within(parse_cpu_millis(text), kMinCpuMillis, kMaxCpuMillis, text, "10m to 1024");
}

Result<std::uint32_t> parse_pids(std::string_view text) {
  auto number = parse_int<std::uint32_t>(text);
  if (!number) return refuse(text, "is not a whole number of processes");
  return within(Result<std::uint32_t>(*number), kMinPids, kMaxPids, text, "8 to 32768");
}

}  // namespace osb
