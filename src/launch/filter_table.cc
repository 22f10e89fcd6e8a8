#include "launch/filter_table.h"

#include <algorithm>

namespace osb::launch {
namespace {

struct ProfileTable {
  SyscallProfile profile;
  Table table;
};

struct Name {
  std::uint32_t nr;
  std::string_view name;
};

#include "launch/seccomp_names.inc"
#include "launch/seccomp_tables.inc"

constexpr bool is(const ProfileTable& entry, SyscallProfile profile, Arch arch) {
  return entry.profile == profile && entry.table.arch == arch;
}

constexpr bool every_pair_has_a_table() {
  for (auto profile : {SyscallProfile::minimal, SyscallProfile::standard, SyscallProfile::permissive})
    for (auto arch : {Arch::x86_64, Arch::aarch64})
      if (std::ranges::none_of(kProfileTables, [&](const auto& entry) { return is(entry, profile, arch); })) return false;
  return true;
}
static_assert(every_pair_has_a_table());

}  // namespace

const Table& table_of(SyscallProfile profile, Arch arch) {
  return std::ranges::find_if(kProfileTables, [&](const auto& entry) { return is(entry, profile, arch); })->table;
}

std::string_view syscall_name(std::uint32_t nr, Arch arch) {
  std::span<const Name> names = arch == Arch::x86_64 ? std::span<const Name>(k_x86_64_names) : std::span<const Name>(k_aarch64_names);
  auto found = std::ranges::lower_bound(names, nr, {}, &Name::nr);
  return found != names.end() && found->nr == nr ? found->name : std::string_view();
}

}  // namespace osb::launch
