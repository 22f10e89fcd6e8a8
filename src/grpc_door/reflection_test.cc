#include "grpc_door/reflection.h"

#include <gtest/gtest.h>

namespace osb::grpc_door {
namespace {

std::string ask(char field, std::string_view text) {
  std::string out{static_cast<char>(field << 3 | 2), static_cast<char>(text.size())};
  return out += text;
}

TEST(Reflection, ListsTheServicesAndDescribesThem) {
  auto reflection = Reflection::load();
  ASSERT_TRUE(reflection) << reflection.error().what();
  auto list = reflection->answer(ask(7, "*"));
  ASSERT_TRUE(list);
  for (auto name : {"opensandbox.session.v1.SessionService", "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"})
    EXPECT_NE(list->find(name), std::string::npos) << name;
  for (auto symbol :
       {"opensandbox.session.v1.SessionService", "opensandbox.session.v1.SessionService.Exec", "opensandbox.session.v1.Session"}) {
    auto file = reflection->answer(ask(4, symbol));
    ASSERT_TRUE(file);
    EXPECT_NE(file->find("opensandbox/session/v1/session.proto"), std::string::npos) << symbol;
    EXPECT_NE(file->find("google/protobuf/timestamp.proto"), std::string::npos) << "with what it imports";
  }
}

TEST(Reflection, WhatIsNotThereIsNotFoundAndWhatIsNoQuestionIsRefused) {
  auto reflection = Reflection::load();
  ASSERT_TRUE(reflection);
  for (const auto& question : {ask(4, "no.such.Thing"), ask(3, "../../etc/passwd"), ask(5, ""), ask(6, "x"), std::string()}) {
    auto answer = reflection->answer(question);
    ASSERT_TRUE(answer);
    EXPECT_NE(answer->find("There is no such"), std::string::npos);
  }
  EXPECT_FALSE(reflection->answer("\xFF\xFF"));
  EXPECT_FALSE(reflection->answer(std::string(100'000, 'x')));
}

}  // namespace
}  // namespace osb::grpc_door
