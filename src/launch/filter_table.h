// The system-call profiles as compiled-in data: what spec/seccomp says, one table per profile and architecture.
//
// A number without a row or rule gets kUnknownCall. Argument rules see only the low 32 bits of an argument, because
// that is all the kernel reads of an int: a comparison of 64 bits would let `domain | 1 << 32` walk past.
#pragma once
#include <linux/audit.h>
#include <linux/seccomp.h>

#include <cerrno>
#include <compare>
#include <cstdint>
#include <span>
#include <string_view>

#include "model/policy.h"

namespace osb::launch {

enum class Arch : std::uint8_t { x86_64, aarch64 };
#if defined(__x86_64__)
inline constexpr Arch kNativeArch = Arch::x86_64;
#elif defined(__aarch64__)
inline constexpr Arch kNativeArch = Arch::aarch64;
#else
#error "there are seccomp tables for x86_64 and aarch64 only"
#endif

constexpr std::uint32_t audit_arch(Arch arch) { return arch == Arch::x86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64; }

// What the kernel does with a call: a SECCOMP_RET_* word.
struct Action {
  std::uint32_t word = SECCOMP_RET_KILL_PROCESS;
  auto operator<=>(const Action&) const = default;
};
inline constexpr Action kAllow{SECCOMP_RET_ALLOW};
inline constexpr Action kKill{SECCOMP_RET_KILL_PROCESS};
constexpr Action refuse(int error) { return {SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)}; }

// ENOSYS and not EPERM: a C library that meets a call newer than the profile takes its older path.
inline constexpr Action kUnknownCall = refuse(ENOSYS);

// x32 calls are x86_64 calls with this bit: a second numbering of the same kernel functions, never used by a payload.
inline constexpr std::uint32_t kX32Bit = 0x40000000;
// A tracer that skips a call (fault injection) turns its number into this one: no call, on no architecture.
inline constexpr std::uint32_t kSkippedCall = 0xffffffff;

struct Row {
  std::uint32_t nr;
  Action action;
};

// Holds when (low 32 bits of args[arg]) & mask is one of `values` (ascending, non-empty).
struct Condition {
  std::uint8_t arg;
  std::uint32_t mask;
  std::span<const std::uint32_t> values;
};

// Applies when all of `when` hold.
struct Case {
  std::span<const Condition> when;
  Action then;
};

// The first case that applies decides.
struct ArgumentRule {
  std::uint32_t nr;
  std::span<const Case> cases;
  Action otherwise;
};

// Rows and rules are ascending by number, below kX32Bit, and no number is in both.
struct Table {
  Arch arch;
  std::span<const Row> rows;
  std::span<const ArgumentRule> rules;
};

const Table& table_of(SyscallProfile profile, Arch arch = kNativeArch);

// "openat", or empty for a number that is newer than our data.
std::string_view syscall_name(std::uint32_t nr, Arch arch = kNativeArch);

}  // namespace osb::launch
