#include "model/metadata.h"

#include <gtest/gtest.h>

namespace osb {
namespace {

TEST(Metadata, AcceptsLabelKeysAndValues) {
  for (const std::string& key :
       {std::string("a"), std::string("tag"), std::string("opensandbox.e2e"), std::string("Team_1.x-y"), std::string("example.com/tag"),
        std::string("a.b.c/D"), std::string(63, 'k'), std::string(63, 'a') + "." + std::string(63, 'b') + "/n"})
    EXPECT_TRUE(check_metadata_key(key)) << key;
  for (const std::string& value : {std::string(), std::string("v"), std::string("V_1.2-3"), std::string(63, 'v')})
    EXPECT_TRUE(check_metadata_value("k", value)) << value;
}

TEST(Metadata, RefusesEverythingElse) {
  for (const std::string& key :
       {std::string(), std::string("/"), std::string("a/"), std::string("/a"), std::string("a/b/c"), std::string("-a"), std::string("a-"),
        std::string(".a"), std::string("a b"), std::string("a\n"), std::string("a\0b", 3), std::string("\xC3\xA9"), std::string(64, 'k'),
        std::string("Upper.com/a"), std::string("a..b/c"), std::string("-a.b/c"), std::string(254, 'a') + "/n",
        std::string("opensandbox.io/x"), std::string("$(id)")}) {
    auto checked = check_metadata_key(key);
    ASSERT_FALSE(checked) << key;
    EXPECT_EQ(checked.error().code(), "SANDBOX::INVALID_METADATA_LABEL");
  }
  for (const std::string& value : {std::string(64, 'v'), std::string("-"), std::string("a b"), std::string("a/b"),
                                   std::string("a\r\nSet-Cookie: x"), std::string("v."), std::string("\x1b[2J")})
    EXPECT_FALSE(check_metadata_value("k", value)) << value;
}

TEST(MetadataPatch, SetsRemovesAndKeepsTheRest) {
  auto patch = parse_metadata_patch(R"({"a":"1","b":null,"c":""})");
  ASSERT_TRUE(patch);
  EXPECT_EQ(patch->size(), 3u);
  EXPECT_EQ(patch->at("a"), "1");
  EXPECT_EQ(patch->at("b"), std::nullopt);
  EXPECT_EQ(patch->at("c"), "");
  EXPECT_TRUE(parse_metadata_patch("{}")->empty());
}

TEST(MetadataPatch, RefusesWithTheCodesClientsKnow) {
  struct Row {
    std::string_view body;
    Errc kind;
    std::string_view code;
  };
  const Row rows[] = {
      {R"({"opensandbox.io/id":"x"})", Errc::invalid_argument, "INVALID_METADATA_LABEL"},
      {R"({"a":"b c"})", Errc::invalid_argument, "INVALID_METADATA_LABEL"},
      {R"({"-":null})", Errc::invalid_argument, "INVALID_METADATA_LABEL"},
      {R"({"a":1})", Errc::malformed, ""},
      {R"({"a":{"b":"c"}})", Errc::malformed, ""},
      {R"(["a"])", Errc::malformed, ""},
      {R"({"a":"1","a":"2"})", Errc::invalid_argument, ""},
      {"", Errc::invalid_argument, ""},
  };
  for (const auto& row : rows) {
    auto patch = parse_metadata_patch(row.body);
    ASSERT_FALSE(patch) << row.body;
    EXPECT_EQ(patch.error().kind(), row.kind) << row.body;
    EXPECT_EQ(patch.error().code(), row.code) << row.body;
  }
}

}  // namespace
}  // namespace osb
