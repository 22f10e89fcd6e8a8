#include "image/reference.h"

#include <gtest/gtest.h>

namespace osb::image {
namespace {

TEST(Reference, GivesADefaultTag) {
  EXPECT_EQ(*full_name("debian"), "debian:latest");
  EXPECT_EQ(*full_name("debian:12"), "debian:12");
  EXPECT_EQ(*full_name("tools/py-3.12_x:V1.0"), "tools/py-3.12_x:V1.0");
  EXPECT_EQ(*full_name("host"), "host");
  EXPECT_EQ(*full_name("host:latest"), "host");
  std::string digest = "sha256:" + std::string(64, 'a');
  EXPECT_EQ(*full_name(digest), digest);
}

TEST(Reference, RefusesOddNames) {
  for (std::string odd : {"",    "-v",       "--name",    "file:///etc/passwd",
                          "a b", "a//b",     "/a",        "a/",
                          "..",  "a/../b",   "a/./b",     "A",
                          "a:",  "a:b:c",    "a:-x",      "a:.x",
                          "a@b", "a\nb",     "a:la test", "a..b",
                          ".a",  "\xc3\xa9", "a+b",       "a:b/c"}) {
    auto name = full_name(odd);
    ASSERT_FALSE(name) << odd;
    EXPECT_EQ(name.error().kind(), Errc::invalid_argument) << odd;
    EXPECT_FALSE(name.error().hint().empty());
  }
  EXPECT_FALSE(full_name(std::string(256, 'a')));
  EXPECT_FALSE(full_name("a:" + std::string(129, 'a')));
  EXPECT_TRUE(full_name(std::string(200, 'a')));
  EXPECT_FALSE(full_name(std::string("a\0b", 3)));
}

TEST(Reference, KeepsOurOwnNamesForUs) {
  for (const char* taken : {"host", "host:latest", "host:12", "sha256", "sha256:abc"}) EXPECT_FALSE(new_name(taken)) << taken;
  EXPECT_TRUE(new_name("hosts"));
}

TEST(Reference, TwoNamesNeverShareAFile) {
  EXPECT_NE(file_of("a/b:c"), file_of("a.b:c"));
  EXPECT_EQ(file_of("a/b:c").find('/'), std::string::npos);
}

TEST(Reference, LeavesOutTheRegistryPeopleLeaveOut) {
  EXPECT_EQ(short_name("docker.io/library/alpine:3"), "alpine:3");
  EXPECT_EQ(short_name("alpine:3"), "alpine:3");
}

}  // namespace
}  // namespace osb::image
