#include "model/json.h"

#include <gtest/gtest.h>

#include <string>

namespace osb {
namespace {

TEST(ParseJson, ReadsOrdinaryValues) {
  auto value = parse_json(R"( {"a":[1,-2,3.5,true,null,"\u00e9\ud83d\ude00"],"b":{"a":18446744073709551615}} )");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->at("a").as_array().size(), 6u);
  EXPECT_EQ(value->at("a").at(5).as_string(), "\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(value->at("b").at("a").as_uint64(), 18446744073709551615ull);
}

TEST(ParseJson, RefusesWhatIsNotStrictJson) {
  const std::string_view rows[] = {
      "{",
      "}",
      "[1,]",
      "{\"a\":1,}",
      "{\"a\"}",
      "{a:1}",
      "'a'",
      "nul",
      "NaN",
      "Infinity",
      "-Infinity",
      "+1",
      "01",
      "1.",
      ".5",
      "0x1",
      "1e",
      "1e999",
      "-1e999",
      "[1e400]",
      "{} {}",
      "{}x",
      "1 2",
      "\"\x01\"",
      "\"\n\"",
      "\"\\x41\"",
      "\"\\ud800\"",
      "\"\\udc00\"",
      "\"\\ud800\\u0041\"",
      "\"\xC0\xAF\"",
      "\"\xED\xA0\x80\"",
      "\"\xF5\x80\x80\x80\"",
      "\"\xFF\"",
      "\"\xE2\x82\"",
      "\xEF\xBB\xBF{}",
      "// c\n{}",
      "/* c */1",
      "\"unclosed",
      "   ",
      "[1 2]",
      "[,1]",
      "\xFE\xFF\x00{",
  };
  for (auto row : rows) {
    auto value = parse_json(row);
    ASSERT_FALSE(value) << row;
    EXPECT_EQ(value.error().kind(), Errc::invalid_argument) << row;
  }
  EXPECT_FALSE(parse_json(""));
  EXPECT_FALSE(parse_json(std::string_view("{}\0", 3)));
}

TEST(ParseJson, RefusesAMemberThatComesTwice) {
  for (std::string_view row :
       {R"({"a":1,"a":2})", R"({"x":{"a":1,"b":2,"a":3}})", R"([{"a":1},{"b":1,"b":1}])", R"({"a":1,"\u0061":2})", R"({"":1,"":2})"}) {
    auto value = parse_json(row);
    ASSERT_FALSE(value) << row;
    EXPECT_NE(value.error().what().find("twice"), std::string::npos) << row;
  }
  EXPECT_TRUE(parse_json(R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}],"A":0})"));
}

TEST(ParseJson, NamesALongMemberThatComesTwiceOnce) {
  std::string key(5000, 'k');
  auto value = parse_json("{\"" + key + "\":1,\"" + key + "\":2}");
  ASSERT_FALSE(value);
  EXPECT_LT(value.error().what().size(), 300u);
  EXPECT_TRUE(parse_json("{\"" + key + "1\":1,\"" + key + "2\":2}"));
}

TEST(ParseJson, StopsAtItsDepth) {
  auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth)));
  EXPECT_FALSE(parse_json(nested(kMaxJsonDepth + 1)));
  EXPECT_FALSE(parse_json(std::string(100'000, '[')));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(parse_json(objects));
}

TEST(ParseJson, StopsAtItsSizeBeforeItReads) {
  std::string text = "\"" + std::string(kMaxJsonBytes, 'x') + "\"";
  auto value = parse_json(text);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().kind(), Errc::too_large);
  EXPECT_TRUE(parse_json(text.substr(0, kMaxJsonBytes - 1) + "\""));
}

TEST(ParseJson, ManyMembersAreNotSlow) {
  std::string text = "{";
  for (int i = 0; i < 90'000; ++i) text += "\"" + std::to_string(i * 7919 % 90'000) + "\":0,";
  text.back() = '}';
  auto value = parse_json(text);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->as_object().size(), 90'000u);
}

TEST(ParseJson, ErrorsDoNotRepeatTheText) {
  auto value = parse_json("{\"password\":\"hunter2\" oops");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().what().find("hunter2"), std::string::npos);
}

TEST(ParseJsonObject, WantsAnObject) {
  EXPECT_TRUE(parse_json_object("{}"));
  for (std::string_view row : {"[]", "1", "\"a\"", "null", "true"}) {
    auto value = parse_json_object(row);
    ASSERT_FALSE(value) << row;
    EXPECT_EQ(value.error().kind(), Errc::malformed);
  }
}

TEST(JsonWriters, AreReadBackUnchanged) {
  StringMap map{{"", ""}, {"a\"b", "line\nbreak"}, {"\xC3\xA9", "\xF0\x9F\x98\x80\x7F"}};
  std::string text;
  append_json_map(text, map);
  for (char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7F);
  auto object = parse_json_object(text);
  ASSERT_TRUE(object);
  for (const auto& [key, value] : map) EXPECT_EQ(object->at(key).as_string(), value);
  text.clear();
  append_json_list(text, {"a", "", "\t"});
  EXPECT_EQ(text, R"(["a","","\t"])");
}

}  // namespace
}  // namespace osb
