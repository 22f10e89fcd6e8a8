#include "execd/accounts.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace osb::execd {
namespace {

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/bash\n"
    "user:x:1000:1001:A User,,,:/home/user:/bin/sh\n";

TEST(Accounts, FindsAnEntryByNumber) {
  auto account = find_account(kPasswd, 1000);
  ASSERT_TRUE(account);
  EXPECT_EQ(account->name, "user");
  EXPECT_EQ(account->gid, 1001u);
  EXPECT_EQ(account->home, "/home/user");
  EXPECT_EQ(account->shell, "/bin/sh");
  EXPECT_FALSE(find_account(kPasswd, 1001));
}

TEST(Accounts, SkipsWhatIsNotWellFormed) {
  for (std::string_view line : {"evil:x:1000\n", "evil:x:1000:0:::sh:extra\n", "evil:x:+1000:0:::/bin/sh\n", "evil:x: 1000:0:::/bin/sh\n",
                                "evil:x:1000:-1:::/bin/sh\n", "evil:x:1000:4294967295:::/bin/sh\n", "evil:x:0x3e8:0:::/bin/sh\n",
                                "evil:x:18446744073709552616:0:::/bin/sh\n", ":x:1000:0:::/bin/sh\n"}) {
    auto account = find_account(cat(line, kPasswd), 1000);
    ASSERT_TRUE(account) << line;
    EXPECT_EQ(account->name, "user") << line;
  }
  EXPECT_FALSE(find_account(std::string_view("evil:x:7:0:::/bin/\0sh\n", 22), 7)) << "no zero bytes in paths";
}

TEST(Accounts, TheHighestNumberIsNobody) { EXPECT_FALSE(find_account("a:x:4294967295:0:::/bin/sh\n", 0xFFFFFFFF)); }

TEST(Accounts, StopsAfterTenThousandLines) {
  std::string text;
  for (std::size_t i = 0; i < kMaxAccountLines - 1; ++i) text += "#\n";
  EXPECT_TRUE(find_account(text + "last:x:5:5:::/bin/sh\n", 5));
  EXPECT_FALSE(find_account(text + "#\nlast:x:5:5:::/bin/sh\n", 5));
}

TEST(Accounts, StopsAfterAMebibyte) {
  std::string filler(kMaxAccountFile, 'x');
  EXPECT_FALSE(find_account(filler + "\nlate:x:5:5:::/bin/sh\n", 5));
  EXPECT_TRUE(find_account("early:x:5:5:::/bin/sh\n" + filler, 5));
}

TEST(Accounts, CollectsGroupsByMembership) {
  constexpr std::string_view kGroup =
      "root:x:0:\nwheel:x:10:root,user\nuser:x:1001:user\nusers:x:100:user\nother:x:7:user2,auser\nbad:x:zz:user\n";
  EXPECT_EQ(find_groups(kGroup, "user", 1001), (std::vector<std::uint32_t>{10, 100}));
  EXPECT_TRUE(find_groups(kGroup, "nobody", 1001).empty());
}

TEST(Accounts, BoundsTheNumberOfGroups) {
  std::string text;
  for (int i = 1; i < 2000; ++i) text += cat("g", i, ":x:", i, ":user\n");
  EXPECT_EQ(find_groups(text, "user", 0).size(), kMaxGroups);
}

TEST(Accounts, AnUnknownUidIsItsOwnGroup) {
  auto who = look_up(54321, std::nullopt);
  EXPECT_EQ(who.uid, 54321u);
  EXPECT_EQ(who.gid, 54321u);
  EXPECT_TRUE(who.groups.empty());
  EXPECT_EQ(look_up(54321, 7).gid, 7u);
}

}  // namespace
}  // namespace osb::execd
