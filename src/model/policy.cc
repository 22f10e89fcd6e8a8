#include "model/policy.h"

namespace osb {

std::string_view name_of(UserMode mode) {
  switch (mode) {
    case UserMode::user: return "user";
    case UserMode::root: return "root";
  }
  return "?";
}

std::string_view name_of(SyscallProfile profile) {
  switch (profile) {
    case SyscallProfile::minimal: return "minimal";
    case SyscallProfile::standard: return "default";
    case SyscallProfile::permissive: return "permissive";
  }
  return "?";
}

std::optional<UserMode> parse_user_mode(std::string_view name) {
  if (name == "user") return UserMode::user;
  if (name == "root") return UserMode::root;
  return std::nullopt;
}

std::optional<SyscallProfile> parse_syscall_profile(std::string_view name) {
  if (name == "minimal") return SyscallProfile::minimal;
  if (name == "default") return SyscallProfile::standard;
  if (name == "permissive") return SyscallProfile::permissive;
  return std::nullopt;
}

}  // namespace osb
