#include "api/plain_text.h"

#include <gtest/gtest.h>

namespace osb::api {
namespace {

TEST(PlainText, KeepsWhatCanBeShown) { EXPECT_EQ(plain_text("a\tb\nåäö 日本 \xF0\x9F\x98\x80\n"), "a\tb\nåäö 日本 \xF0\x9F\x98\x80\n"); }

TEST(PlainText, ReplacesControlSequencesAndBytesThatAreNoText) {
  EXPECT_EQ(plain_text("\x1b[2Jx"), "\xEF\xBF\xBD[2Jx");
  EXPECT_EQ(plain_text(std::string_view("\0", 1)), "\xEF\xBF\xBD");
  EXPECT_EQ(plain_text("\x7f"), "\xEF\xBF\xBD");
  EXPECT_EQ(plain_text("\xC2\x9B"), "\xEF\xBF\xBD") << "a C1 control";
  EXPECT_EQ(plain_text("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "overlong";
  EXPECT_EQ(plain_text("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "a surrogate";
  EXPECT_EQ(plain_text("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "cut short";
}

TEST(PlainText, EndsLinesInOneWay) { EXPECT_EQ(plain_text("a\r\nb\rc\n"), "a\nb\nc\n"); }

TEST(LastLines, AreTheLastOnesAndSayWhenSomethingIsLeftOut) {
  bool cut = false;
  EXPECT_EQ(last_lines("a\nb\nc\n", 3, 100, cut), "a\nb\nc\n");
  EXPECT_FALSE(cut);
  EXPECT_EQ(last_lines("a\nb\nc\n", 2, 100, cut), "b\nc\n");
  EXPECT_TRUE(cut);
  cut = false;
  EXPECT_EQ(last_lines("a\nb\nc", 1, 100, cut), "c");
  EXPECT_EQ(last_lines("", 5, 100, cut), "");
}

TEST(LastLines, StayWithinTheBytesAndDoNotCutACharacter) {
  bool cut = false;
  EXPECT_EQ(last_lines("first\nsecond\n", 10, 9, cut), "second\n");
  EXPECT_TRUE(cut);
  EXPECT_EQ(last_lines("\xC3\xA5\xC3\xA4", 1, 3, cut), "\xC3\xA4");
}

}  // namespace
}  // namespace osb::api
