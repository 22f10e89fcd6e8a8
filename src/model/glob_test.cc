#include "model/glob.h"

#include <gtest/gtest.h>

namespace osb {
namespace {

TEST(Glob, MatchesWholeTexts) {
  struct Row {
    std::string_view pattern, text;
    bool matches;
  };
  constexpr Row kRows[] = {{"rm", "rm", true},
                           {"rm", "rmdir", false},
                           {"rm", "arm", false},
                           {"rm*", "rmdir", true},
                           {"*", "", true},
                           {"*", "anything/at all", true},
                           {"?", "a", true},
                           {"?", "", false},
                           {"?", "\xC3\xA9", true},
                           {"??", "\xC3\xA9", false},
                           {"[ab]c", "bc", true},
                           {"[ab]c", "cc", false},
                           {"[a-c]", "b", true},
                           {"[!a-c]", "b", false},
                           {"[!a-c]", "d", true},
                           {"[]]", "]", true},
                           {"\\*", "*", true},
                           {"\\*", "x", false},
                           {"-*r*", "-rf", true},
                           {"-*r*", "-fr", true},
                           {"-*r*", "--force", true},
                           {"-[!-]*r*", "--force", false},
                           {"*.py", "a.py", true},
                           {"*.py", "a.pyc", false},
                           {"a*b*c", "aXbYc", true},
                           {"a*b*c", "aXcYb", false},
                           {"*a*a*a*b", "aaaaaaaa", false},
                           {"x*", "x", true},
                           {"[a-]", "-", true},
                           {"python3.[0-9]", "python3.9", true}};
  for (const auto& row : kRows) {
    ASSERT_TRUE(check_glob(row.pattern)) << row.pattern;
    EXPECT_EQ(glob_matches(row.pattern, row.text), row.matches) << row.pattern << " on " << row.text;
  }
}

TEST(Glob, RefusesPatternsThatMeanNothing) {
  for (std::string_view pattern : {"", "[", "a[b", "[!", "a\\", "[]"}) EXPECT_FALSE(check_glob(pattern)) << pattern;
  EXPECT_FALSE(check_glob(std::string(kMaxGlobBytes + 1, 'a')));
  EXPECT_FALSE(check_glob(std::string_view("a\0b", 3)));
  EXPECT_TRUE(check_glob(std::string(kMaxGlobBytes, '*')));
}

TEST(Glob, TakesAtMostPatternTimesTextSteps) {
  std::string pattern, text(20'000, 'a');
  for (int i = 0; i < 100; ++i) pattern += "*a";
  pattern += "*b";
  std::size_t steps = 0;
  EXPECT_FALSE(glob_matches(pattern, text, &steps));
  EXPECT_LT(steps, 2 * pattern.size() + 2 * text.size());  // each star is met once and only the last one moves
}

TEST(Glob, TellsWhatEveryMatchBeginsAndEndsWith) {
  EXPECT_EQ(glob_prefix("--force*"), "--force");
  EXPECT_EQ(glob_prefix("\\*x?"), "*x");
  EXPECT_EQ(glob_suffix("*.py"), ".py");
  EXPECT_EQ(glob_suffix("a[bc]d"), "d");
  EXPECT_EQ(glob_suffix("abc"), "abc");
  EXPECT_TRUE(glob_is_all("**"));
  EXPECT_FALSE(glob_is_all("*a"));
}

}  // namespace
}  // namespace osb
