#include "api/create_memo.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace osb::api {
namespace {

SandboxSpec plain() {
  SandboxSpec spec;
  spec.image = "host";
  spec.entrypoint = {"tail", "-f", "/dev/null"};
  return spec;
}

TEST(CreateMemo, TheSameBytesGiveTheSameSpecAndOthersNone) {
  CreateMemo memo;
  EXPECT_EQ(memo.find("{}"), nullptr);
  memo.keep("{}", plain());
  ASSERT_NE(memo.find("{}"), nullptr);
  EXPECT_EQ(memo.find("{}")->image, "host");
  EXPECT_EQ(memo.find("{ }"), nullptr);
  EXPECT_EQ(memo.find(""), nullptr);
  memo.clear();
  EXPECT_EQ(memo.find("{}"), nullptr);
}

TEST(CreateMemo, TheOldestMakesRoom) {
  CreateMemo memo;
  for (std::size_t i = 0; i <= CreateMemo::kMost; ++i) memo.keep(cat("{", i, "}"), plain());
  EXPECT_EQ(memo.find("{0}"), nullptr);
  for (std::size_t i = 1; i <= CreateMemo::kMost; ++i) EXPECT_NE(memo.find(cat("{", i, "}")), nullptr) << i;
}

TEST(CreateMemo, WhatIsSomebodysOwnIsNotKept) {
  auto kept = [](auto change) {
    CreateMemo memo;
    auto spec = plain();
    change(spec);
    memo.keep("{}", spec);
    return memo.find("{}") != nullptr;
  };
  EXPECT_TRUE(kept([](SandboxSpec&) {})) << "the control";
  EXPECT_FALSE(kept([](SandboxSpec& spec) { spec.env["TOKEN"] = "x"; }));
  EXPECT_FALSE(kept([](SandboxSpec& spec) { spec.image_auth.username = "me"; }));
  EXPECT_FALSE(kept([](SandboxSpec& spec) { spec.image_auth.password = "x"; }));
  EXPECT_FALSE(kept([](SandboxSpec& spec) { spec.metadata["of"] = "me"; }));
  EXPECT_FALSE(kept([](SandboxSpec& spec) { spec.extensions["poolRef"] = "mine"; }));
  EXPECT_FALSE(kept([](SandboxSpec& spec) { spec.volumes.emplace_back(); }));
  CreateMemo memo;
  memo.keep(std::string(CreateMemo::kMaxBodyBytes + 1, ' '), plain());
  EXPECT_EQ(memo.find(std::string(CreateMemo::kMaxBodyBytes + 1, ' ')), nullptr) << "long ones are not kept";
}

}  // namespace
}  // namespace osb::api
