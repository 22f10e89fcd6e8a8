// Quantities of resources as clients write them: exact integers in base units, never a float.
//
// "512Mi", "1.5g", "0.1Gi" (rounded down to a whole byte). Refused with Errc::invalid_argument: zero, signs, NaN,
// infinity, exponents, blanks, an unknown unit, nothing at all, more than 64 bits hold, and what is out of bounds.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace osb {

inline constexpr std::uint64_t kMinMemoryBytes = 16ull << 20;
inline constexpr std::uint64_t kMaxMemoryBytes = 1ull << 40;
inline constexpr std::uint32_t kMinCpuMillis = 10;
inline constexpr std::uint32_t kMaxCpuMillis = 1024 * 1000;
inline constexpr std::uint32_t kMinPids = 8;
inline constexpr std::uint32_t kMaxPids = 32768;
inline constexpr std::uint64_t kMinDiskBytes = 1ull << 20;
inline constexpr std::uint64_t kMaxDiskBytes = 16ull << 40;

// Bytes with an optional unit, any case: b, k/kb (1000), ki/kib (1024); m, g, t, p, e likewise.
Result<std::uint64_t> parse_bytes(std::string_view text);
// "500m", "1", "0.5" in thousandths of a cpu; finer than one thousandth is refused.
Result<std::uint32_t> parse_cpu_millis(std::string_view text);

// The same with the bounds above.
Result<std::uint64_t> parse_memory(std::string_view text);
Result<std::uint64_t> parse_disk(std::string_view text);
Result<std::uint32_t> parse_cpu(std::string_view text);
Result<std::uint32_t> parse_pids(std::string_view text);

}  // namespace osb
