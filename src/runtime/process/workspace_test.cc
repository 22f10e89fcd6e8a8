#include "runtime/process/workspace.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace osb::runtime {
namespace {

TEST(Workspace, DirectoriesThatHoldTheHomeAreToldFromThoseInsideIt) {
  EXPECT_TRUE(holds_home("/", "/home/ann"));
  EXPECT_TRUE(holds_home("/", ""));
  EXPECT_TRUE(holds_home("/home", "/home/ann"));
  EXPECT_TRUE(holds_home("/home/ann", "/home/ann"));
  EXPECT_FALSE(holds_home("/home/ann/project", "/home/ann"));
  EXPECT_FALSE(holds_home("/home/an", "/home/ann"));
  EXPECT_FALSE(holds_home("/srv/project", "/home/ann"));
  EXPECT_FALSE(holds_home("/srv/project", ""));
}

TEST(Workspace, WhatIsNoDirectoryIsRefusedAndNoneIsNone) {
  auto none = checked_workspace("");
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, "");
  for (const char* path : {"/no/such/place", "/etc/passwd", "/"}) {
    auto refused = checked_workspace(path);
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().kind(), Errc::invalid_argument);
    EXPECT_EQ(refused.error().field(), "process.workspace");
  }
  EXPECT_TRUE(checked_workspace("/usr/share"));
}

}  // namespace
}  // namespace osb::runtime
