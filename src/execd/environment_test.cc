#include "execd/environment.h"

#include <gtest/gtest.h>

namespace osb::execd {
namespace {

TEST(Environment, FileLinesOverlayAndMayReferToVariables) {
  Env env{{"HOME", "/root"}, {"KEEP", "1"}};
  overlay_file_text(env,
                    "# comment\n"
                    "A=plain\n"
                    "  B = spaced name\r\n"
                    "C=$HOME/x:${A}\n"
                    "D=$UNKNOWN-$\n"
                    "no equals sign\n"
                    "9BAD=x\n"
                    "E=\n"
                    "KEEP=2");
  EXPECT_EQ(env["A"], "plain");
  EXPECT_EQ(env["B"], " spaced name");
  EXPECT_EQ(env["C"], "/root/x:plain");
  EXPECT_EQ(env["D"], "-$");
  EXPECT_EQ(env["E"], "");
  EXPECT_EQ(env["KEEP"], "2");
  EXPECT_FALSE(env.contains("9BAD"));
  EXPECT_EQ(env.size(), 7u);
}

TEST(Environment, OnlyTheFirstPartOfALongFileCounts) {
  Env env;
  overlay_file_text(env, "A=1\n" + std::string(kMaxEnvFile, '#') + "\nB=2\n");
  EXPECT_TRUE(env.contains("A"));
  EXPECT_FALSE(env.contains("B"));
}

TEST(Environment, PathsExpandHomeAndVariables) {
  Env env{{"NAME", "data"}, {"ABS", "/srv"}};
  auto expand = [&](std::string_view path) { return expand_path(path, env, "/home/user", "/workspace"); };
  EXPECT_EQ(*expand("~"), "/home/user");
  EXPECT_EQ(*expand("~/x"), "/home/user/x");
  EXPECT_EQ(*expand("~other"), "/workspace/~other");
  EXPECT_EQ(*expand("$ABS/${NAME}"), "/srv/data");
  EXPECT_EQ(*expand("rel/$NAME"), "/workspace/rel/data");
  EXPECT_EQ(*expand("/a$/b"), "/a$/b");
  EXPECT_EQ(*expand("/${bad name}"), "/${bad name}");
}

TEST(Environment, AnUnknownVariableInAPathIsAnError) {
  auto path = expand_path("/x/$NOPE", {}, "/", "/");
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().kind(), Errc::invalid_argument);
  EXPECT_NE(path.error().what().find("NOPE"), std::string::npos);
}

TEST(Environment, RefusesPathsTheKernelCannotTake) {
  EXPECT_FALSE(expand_path(std::string_view("/a\0b", 4), {}, "/", "/"));
  EXPECT_FALSE(expand_path("/" + std::string(5000, 'a'), {}, "/", "/"));
}

TEST(Environment, RefusesVariablesThatExecCannotCarry) {
  EXPECT_TRUE(check_variable("A", "any = value"));
  EXPECT_FALSE(check_variable("", "x"));
  EXPECT_FALSE(check_variable("A=B", "x"));
  EXPECT_FALSE(check_variable("A", std::string_view("x\0y", 3)));
}

TEST(Environment, DefaultsFillGapsOnly) {
  Identity who{.uid = 1, .gid = 1, .groups = {}, .account = Account{"bob", 1, 1, "/home/bob", "/bin/zsh"}};
  Env env{{"PATH", "/opt"}, {"LANG", "de_DE.UTF-8"}};
  add_defaults(env, who, "");
  EXPECT_EQ(env["PATH"], "/opt");
  EXPECT_FALSE(env.contains("LC_CTYPE"));
  EXPECT_EQ(env["HOME"], "/home/bob");
  EXPECT_EQ(env["USER"], "bob");
  EXPECT_EQ(env["SHELL"], "/bin/zsh");
  Env bare;
  add_defaults(bare, {}, "");
  EXPECT_EQ(bare["PATH"], kDefaultPath);
  EXPECT_EQ(bare["LC_CTYPE"], "C.UTF-8");
  EXPECT_EQ(bare["HOME"], "/");
}

}  // namespace
}  // namespace osb::execd
