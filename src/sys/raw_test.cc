#include "sys/raw.h"

#include <gtest/gtest.h>

namespace osb::sys::raw {
namespace {

TEST(Landlock, RightsGrowWithTheKernelAndNeverBeyondIt) {
  constexpr std::uint64_t kFs[] = {0x1FFF, 0x3FFF, 0x7FFF, 0x7FFF, 0xFFFF, 0xFFFF, 0xFFFF};
  for (int abi = 1; abi <= 7; ++abi) {
    EXPECT_EQ(landlock_fs_rights(abi), kFs[abi - 1]) << abi;
    EXPECT_EQ(landlock_net_rights(abi), abi >= 4 ? 3u : 0u) << abi;
    EXPECT_EQ(landlock_scopes(abi), abi >= 6 ? 3u : 0u) << abi;
  }
}

// The kernel refuses a right it does not know: every ABI up to its own is one it takes.
TEST(Landlock, ThisKernelTakesTheRulesOfItsOwnAbiAndOfOlderOnes) {
  int own = landlock_abi();
  if (own < 1) GTEST_SKIP() << "NOT TESTED: needs Landlock (Linux 5.13 or later, booted with lsm=landlock)";
  for (int abi = 1; abi <= own; ++abi) {
    LandlockRuleset rules{.handled_fs = landlock_fs_rights(abi), .handled_net = landlock_net_rights(abi), .scoped = landlock_scopes(abi)};
    int ruleset = landlock_create_ruleset(rules, abi);
    EXPECT_GE(ruleset, 0) << abi;
    if (ruleset >= 0) ::close(ruleset);
  }
}

}  // namespace
}  // namespace osb::sys::raw
