#include "execd/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "base/fd.h"
#include "base/text.h"
#include "execd/child.h"
#include "execd/small_file.h"

namespace osb::execd {
namespace {

using Words = std::vector<std::string>;

struct Outcome {
  std::string output;  // stdout and stderr together
  int status = -1;     // as waitpid gives it
  auto operator<=>(const Outcome&) const = default;
};

Outcome run(std::vector<Attempt> attempts, const Env& env) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  Fd reading(ends[0]);
  Fd writing(ends[1]);
  ChildPlan plan;
  plan.attempts = attempts;
  plan.env = &env;
  plan.cwd = "/usr";
  plan.out = plan.err = writing.get();
  auto child = start_child(plan);
  writing.reset();
  if (child.pid < 0) return {cat("not started: ", name_of(child.failed)), -1};
  auto output = read_all_of(reading.get(), 1 << 20);
  Outcome outcome{output ? *std::move(output) : "", -1};
  ::waitpid(child.pid, &outcome.status, 0);
  return outcome;
}

Env test_environment() {
  Env env{{"PATH", std::string(kDefaultPath)}, {"PWD", "/usr"}, {"X", "1"}};
  add_defaults(env, {}, "/root");
  return env;
}

// Not waited for here, so that the test does not depend on what bash would say about a missing shell.
bool has_bash() { return ::access("/bin/bash", X_OK) == 0 || ::access("/usr/bin/bash", X_OK) == 0; }

constexpr std::string_view kPlainCommands[] = {
    "echo hello",
    "echo",
    "echo a  b   c",
    "  echo padded  ",
    "echo a=b x-",
    "echo 50% @home +x a:b,c/d.e",
    "true",
    "false",
    "printf hello",
    "printf a=b:c",
    "env",
    "ls /usr",
    "ls /nonexistent/file",
    "cat /etc/passwd",
    "cat lib64/../../etc/passwd",
    "/bin/echo with a path",
    "../bin/echo relative",
    "bin/echo relative too",
    "seq 1 5",
    "sort -r /etc/passwd",
    "expr 1 + 1",
    "basename /a/b/c.txt .txt",
    "sh -c true",
    "dirname -- /a/b",
    "head -c 100000 /dev/zero",
    "sleep 0.01",
    "nonexistent-command-4711",
    "/usr/nonexistent/program",
    "/etc/passwd",
    "/usr",
    "a+b",
    "2",
    "-x",
};

TEST(PlainWords, TableOfCommandsRunsTheSameWithAndWithoutBash) {
  if (!has_bash()) GTEST_SKIP() << "needs bash";
  Env env = test_environment();
  for (std::string_view command : kPlainCommands) {
    ASSERT_FALSE(plain_words(command).empty()) << command;
    auto attempts = attempts_for_command(std::string(command), env);
    ASSERT_EQ(attempts.size(), 3u) << "directly, bash, sh";
    auto direct = run(attempts, env);
    auto by_bash = run({attempts[1]}, env);
    EXPECT_EQ(direct.status, by_bash.status) << command;
    auto lines = [](const std::string& text) {
      auto parts = split(text, '\n');
      return std::multiset<std::string_view>(parts.begin(), parts.end());
    };
    // Only env prints in an order that depends on who made the environment.
    if (command == "env")
      EXPECT_EQ(lines(direct.output), lines(by_bash.output));
    else
      EXPECT_EQ(direct.output, by_bash.output) << command;
  }
}

TEST(PlainWords, TheTableReallyTakesTheShortWay) {
  Env env = test_environment();
  auto attempts = attempts_for_command("echo hello", env);
  EXPECT_EQ(run({attempts[0]}, env).output, "hello\n") << "without any shell to fall back on";
}

TEST(PlainWords, LeavesEverythingElseToTheShell) {
  for (std::string_view command : {"echo $HOME", "echo *",     "echo a;b",   "a|b",       "a&",          "a>b",       "a<b",
                                   "echo 'x'",   "echo \"x\"", "echo \\x",   "echo ~",    "echo {a,b}",  "echo [a]",  "echo a\nb",
                                   "echo a\tb",  "echo `x`",   "(a)",        "! true",    "echo #x",     "a ^b",      "A=1",
                                   "A=1 env",    "PATH=/x ls", "echo -n x",  "echo -e x", "echo --help", "echo a -n", "true --help",
                                   "false x",    "printf %s",  "printf a b", "printf -v", "printf",      "%1",        "echo caf\xc3\xa9",
                                   "",           "   ",        "echo\rx"})
    EXPECT_TRUE(plain_words(command).empty()) << command;
}

TEST(PlainWords, KnowsEveryWordBashKeepsForItself) {
  if (!has_bash()) GTEST_SKIP() << "needs bash";
  Env env = test_environment();
  auto words = run({attempts_for_command("compgen -b; compgen -k", env)[0]}, env);
  ASSERT_GT(words.output.size(), 300u);
  for (std::string_view word : split(words.output, '\n')) {
    if (word.empty() || word == "echo" || word == "printf" || word == "true" || word == "false") continue;
    EXPECT_TRUE(plain_words(word).empty()) << word;
    EXPECT_TRUE(plain_words(cat(word, " x")).empty()) << word;
  }
}

TEST(PlainWords, SplitsAtSpacesOnly) {
  EXPECT_EQ(plain_words(" ls  -l a=b "), (Words{"ls", "-l", "a=b"}));
  EXPECT_EQ(plain_words("python3 -V"), (Words{"python3", "-V"}));
}

TEST(PlainEnvironment, VariablesThatChangeAShellKeepTheShell) {
  EXPECT_TRUE(environment_is_plain(test_environment()));
  for (const char* name : {"BASH_ENV", "SHELLOPTS", "BASHOPTS", "EXECIGNORE", "POSIXLY_CORRECT", "BASH_FUNC_ls%%"}) {
    Env env = test_environment();
    env[name] = "x";
    EXPECT_FALSE(environment_is_plain(env)) << name;
    EXPECT_EQ(attempts_for_command("ls", env).size(), 2u) << name;
  }
  for (const char* path : {"", ":/bin", "/bin:", "bin:/bin", "."}) {
    Env env = test_environment();
    env["PATH"] = path;
    EXPECT_FALSE(environment_is_plain(env)) << path;
  }
}

TEST(Attempts, AFileThatCannotRunFallsThroughToTheShell) {
  if (!has_bash()) GTEST_SKIP() << "needs bash";
  Env env = test_environment();
  auto refused = run(attempts_for_command("/etc/passwd", env), env);
  EXPECT_NE(refused.output.find("bash: line 1: /etc/passwd: Permission denied"), std::string::npos) << refused.output;
  EXPECT_EQ(WEXITSTATUS(refused.status), 126);
}

TEST(Attempts, WithoutAProgramSayWhy) {
  Env env = test_environment();
  ChildPlan plan;
  plan.env = &env;
  plan.cwd = "/";
  auto attempts = attempts_for_argv({"nonexistent-command-4711"});
  plan.attempts = attempts;
  auto absent = start_child(plan);
  EXPECT_EQ(absent.failed, ChildStep::exec);
  EXPECT_EQ(absent.sys, ENOENT);
  attempts = attempts_for_argv({"/etc/passwd"});
  plan.attempts = attempts;
  EXPECT_EQ(start_child(plan).sys, EACCES);
  plan.cwd = "/nonexistent";
  EXPECT_EQ(start_child(plan).failed, ChildStep::cwd);
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
}

}  // namespace
}  // namespace osb::execd
