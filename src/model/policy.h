// What a sandbox may do: who it runs as, which system calls, whether its root is writable.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace osb {

// user: uid 1000 without any capability. root: inner uid 0 with eight capabilities that count only inside.
enum class UserMode : std::uint8_t { user, root };
enum class SyscallProfile : std::uint8_t { minimal, standard, permissive };
enum class RootMode : std::uint8_t { read_only, writable };

// Wire and configuration names. `standard` is called "default" there.
std::string_view name_of(UserMode mode);
std::string_view name_of(SyscallProfile profile);
std::optional<UserMode> parse_user_mode(std::string_view name);
std::optional<SyscallProfile> parse_syscall_profile(std::string_view name);

struct Policy {
  UserMode user = UserMode::user;
  SyscallProfile syscalls = SyscallProfile::standard;
  RootMode root = RootMode::read_only;
  auto operator<=>(const Policy&) const = default;
};

}  // namespace osb
