#include "runtime/process/workspace.h"

#include <gtest/gtest.h>

namespace osb::runtime {
namespace {

Private places() {
  return {.homes = {"/home/ann", ""}, .sockets = {"/run/user/7", "/home/ann/.local/state/opensandbox", "/tmp/opensandbox-7"}};
}

bool is_refused(std::string_view directory) { return !check_workspace(directory, places()); }

TEST(Workspace, WhatHoldsAHomeIsRefusedAndWhatLiesInOneIsNot) {
  EXPECT_TRUE(is_refused("/"));
  EXPECT_TRUE(is_refused("/home"));
  EXPECT_TRUE(is_refused("/home/ann"));
  EXPECT_FALSE(is_refused("/home/ann/project"));
  EXPECT_FALSE(is_refused("/home/an"));
  EXPECT_FALSE(is_refused("/srv/project"));
}

TEST(Workspace, PlacesWhereTheUsersProgramsListenAreRefusedFromAboveAndFromWithin) {
  EXPECT_TRUE(is_refused("/tmp"));
  EXPECT_TRUE(is_refused("/tmp/opensandbox-7/default"));
  EXPECT_TRUE(is_refused("/run"));
  EXPECT_TRUE(is_refused("/run/user/7/app"));
  EXPECT_TRUE(is_refused("/home/ann/.local"));
  EXPECT_TRUE(is_refused("/home/ann/.local/state/opensandbox/images"));
  EXPECT_FALSE(is_refused("/tmp/project"));
  EXPECT_FALSE(is_refused("/run/user/77"));
}

TEST(Workspace, AHomeAmongTheProgramsOfTheHostIsRefused) {
  EXPECT_TRUE(check_programs(places()));
  EXPECT_FALSE(check_programs({.homes = {"/usr/home/ann"}, .sockets = {}}));
}

TEST(Workspace, WhatIsNoDirectoryIsRefusedAndNoneIsNone) {
  auto none = checked_workspace("", places());
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, "");
  for (const char* path : {"/no/such/place", "/etc/passwd", "/"}) {
    auto refused = checked_workspace(path, places());
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().kind(), Errc::invalid_argument);
    EXPECT_EQ(refused.error().field(), "process.workspace");
  }
  EXPECT_TRUE(checked_workspace("/usr/share", places()));
}

}  // namespace
}  // namespace osb::runtime
