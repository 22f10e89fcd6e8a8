#include "model/command_policy.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "model/json.h"

namespace osb {
namespace {

CommandPolicy policy_of(std::string_view text) {
  auto policy = parse_command_policy(text);
  EXPECT_TRUE(policy) << (policy ? "" : policy.error().what());
  return policy ? *std::move(policy) : CommandPolicy{};
}

constexpr std::string_view kNoRm = R"({"rules":[{"name":"no-rm","program":["rm","unlink"],"action":"deny","reason":"files are kept"}]})";
constexpr std::string_view kMixed = R"({"rules":[
  {"name":"push","program":"git","args_start":"push","action":"ask"},
  {"name":"force","program":"rm","args_any":["-*r*","--recursive"],"action":"deny"},
  {"name":"net","program":["curl","wget"],"action":"ask","reason":"leaves the sandbox"},
  {"name":"all","program":"tar","args_all":["*x*","/etc*"],"action":"deny"}]})";

CommandAction action(const CommandPolicy& policy, std::string_view line) {
  return judge(policy, Command::of_line(std::string(line))).action;
}

TEST(CommandPolicy, NothingIsJudgedWithoutRules) {
  CommandPolicy none;
  EXPECT_FALSE(none.judges());
  EXPECT_EQ(action(none, "eval $X; rm -rf /"), CommandAction::allow);
  EXPECT_FALSE(policy_of(R"({"rules":[{"program":"ls","action":"allow"}]})").judges());
}

TEST(CommandPolicy, RefusesAProgramHoweverItIsWritten) {
  auto policy = policy_of(kNoRm);
  for (std::string_view line : {"rm x",
                                "\\rm x",
                                "r''m x",
                                "'r'\"m\" x",
                                "/bin/rm x",
                                "/usr/../bin//rm x",
                                "./rm x",
                                "command rm x",
                                "exec rm x",
                                "builtin command rm x",
                                "ls\nrm x",
                                "ls;rm x",
                                "ls&rm x",
                                "ls||rm x",
                                "(rm x)",
                                "{ rm x; }",
                                "if true; then rm x; fi",
                                "f() { rm x; }; f",
                                "echo $(rm x)",
                                "echo `rm x`",
                                "echo \"$(rm x)\"",
                                "cat <<EOF\n$(rm x)\nEOF",
                                "diff <(rm x) y",
                                "X=1 rm x",
                                "X=$(rm x)",
                                "env X=1 rm x",
                                "sudo rm x",
                                "sh -c 'rm x'",
                                "bash -lc 'ls && rm x'",
                                "sh -c \"bash -c 'rm x'\"",
                                "ls | xargs rm",
                                "find . -exec rm {} +",
                                "timeout 5 rm x",
                                "nice -n 3 nohup rm x",
                                "busybox rm x",
                                "> f rm x",
                                "2>&1 rm x",
                                "{fd}>f rm x",
                                "r\\\nm x",
                                "$'\\162\\155' x",
                                "eval 'rm x'",
                                "trap 'rm x' EXIT",
                                "! rm x",
                                "time rm x",
                                "case a in a) rm x;; esac",
                                "while rm x; do :; done",
                                "[[ -f y ]] && rm x",
                                "a=([0]=$(rm x))",
                                "echo ${A:=$(rm x)}",
                                "echo $(( $(rm x) ))",
                                "unlink x"})
    EXPECT_EQ(action(policy, line), CommandAction::deny) << line;
}

TEST(CommandPolicy, RefusesWhatCouldBeThatProgram) {
  auto policy = policy_of(kNoRm);
  for (std::string_view line : {"$(which rm) x", "`echo rm` x", "X=rm; $X x", "${X} x", "\"$X\" x", "r? x", "/bin/r* x", "{rm,x}",
                                "eval \"$X\"", "echo rm x | sh", "bash <<E\nrm x\nE", "sh", "base64 -d f | bash", "alias l=rm; l x",
                                "\"r$X\" y", "bash -c \"$CMD\"", "BASH_ENV=/tmp/x bash y.sh", "set -- rm x; \"$@\"", "source <(echo rm x"})
    EXPECT_EQ(action(policy, line), CommandAction::deny) << line;
  auto verdict = judge(policy, Command::of_line("X=rm; $X x"));
  EXPECT_TRUE(verdict.unclear);
  EXPECT_EQ(verdict.rule, "no-rm");
}

TEST(CommandPolicy, LetsEverythingElsePass) {
  auto policy = policy_of(kNoRm);
  for (std::string_view line : {"ls -la",
                                "echo rm x",
                                "echo 'rm x'",
                                "echo \"a; rm x\"",
                                "# rm x",
                                "grep rm file",
                                "rmdir x",
                                "cat rm",
                                "git rm x",
                                "cat <<'EOF'\nrm x\nEOF",
                                "cat <<EOF\nrm x\nEOF",
                                "echo $HOME/*.txt",
                                "python3 -c 'print(1)'",
                                "for i in rm; do echo $i; done",
                                "\xEF\xBD\x92\xEF\xBD\x8D x",
                                "rm\xE2\x80\x8B x",
                                "[ -f rm ]",
                                "case rm in rm) echo;; esac",
                                "X=rm",
                                "export X=rm",
                                "ls > rm",
                                "test -n \"$X\" && echo y",
                                "i=$((i+1))",
                                "bash build.sh rm"})
    EXPECT_EQ(action(policy, line), CommandAction::allow) << line << ": " << judge(policy, Command::of_line(std::string(line))).sentence();
}

TEST(CommandPolicy, LooksAtArguments) {
  auto policy = policy_of(kMixed);
  EXPECT_EQ(action(policy, "rm x"), CommandAction::allow);
  EXPECT_EQ(action(policy, "rm -f x"), CommandAction::allow);
  EXPECT_EQ(action(policy, "rm -fr x"), CommandAction::deny);
  EXPECT_EQ(action(policy, "rm x --recursive"), CommandAction::deny);
  EXPECT_EQ(action(policy, "rm $X"), CommandAction::deny);
  EXPECT_EQ(action(policy, "rm \"a$X\""), CommandAction::allow);  // begins with an a, whatever X is
  EXPECT_EQ(action(policy, "rm a*"), CommandAction::allow);
  EXPECT_EQ(action(policy, "git push origin"), CommandAction::ask);
  EXPECT_EQ(action(policy, "git pull"), CommandAction::allow);
  EXPECT_EQ(action(policy, "git \"$VERB\""), CommandAction::ask);
  EXPECT_EQ(action(policy, "git $VERB"), CommandAction::ask);
  EXPECT_EQ(action(policy, "tar -xf a -C /etc/x"), CommandAction::deny);
  EXPECT_EQ(action(policy, "tar -xf a"), CommandAction::allow);
  EXPECT_EQ(action(policy, "ls | xargs rm"), CommandAction::deny);
}

TEST(CommandPolicy, TheStrictestVerdictIsTheLines) {
  auto policy = policy_of(kMixed);
  EXPECT_EQ(action(policy, "ls; curl x"), CommandAction::ask);
  EXPECT_EQ(action(policy, "curl x; rm -rf y"), CommandAction::deny);
  EXPECT_EQ(action(policy, "rm -rf y; curl x"), CommandAction::deny);
  auto verdict = judge(policy, Command::of_line("ls && curl https://x"));
  EXPECT_EQ(verdict.rule, "net");
  EXPECT_EQ(verdict.command, "curl https://x");
  EXPECT_EQ(verdict.reason, "leaves the sandbox");
}

TEST(CommandPolicy, TheFirstRuleThatMatchesDecides) {
  auto policy = policy_of(R"({"default":"deny","rules":[
    {"program":"git","args_start":"push","action":"deny"},{"program":["git","ls","cat"],"action":"allow"},{"program":"*","args_any":"--help","action":"allow"}]})");
  EXPECT_EQ(action(policy, "git status"), CommandAction::allow);
  EXPECT_EQ(action(policy, "git push"), CommandAction::deny);
  EXPECT_EQ(action(policy, "make"), CommandAction::deny);
  EXPECT_EQ(action(policy, "make --help"), CommandAction::allow);
  EXPECT_EQ(action(policy, "$X --help"), CommandAction::deny);  // X may be git push
  EXPECT_EQ(action(policy, "$X"), CommandAction::deny);
  EXPECT_EQ(action(policy, "ls | cat"), CommandAction::allow);
  EXPECT_EQ(action(policy, "ls $X"), CommandAction::allow);
}

TEST(CommandPolicy, UnclearIsAtMostWhatTheSettingSays) {
  auto ask = policy_of(R"({"unclear":"ask","rules":[{"program":"rm","action":"deny"}]})");
  EXPECT_EQ(action(ask, "$X"), CommandAction::ask);
  EXPECT_EQ(action(ask, "rm"), CommandAction::deny);
  auto open = policy_of(R"({"unclear":"allow","rules":[{"program":"rm","action":"deny"}]})");
  EXPECT_EQ(action(open, "$X"), CommandAction::allow);
  auto mild = policy_of(R"({"rules":[{"program":"rm","action":"ask"}]})");  // and at most what a rule could say
  EXPECT_EQ(action(mild, "$X"), CommandAction::ask);
}

TEST(CommandPolicy, ComparesWholePathsWhereThePatternHasOne) {
  auto policy = policy_of(R"({"rules":[{"program":"/usr/bin/g*","action":"deny"}]})");
  EXPECT_EQ(action(policy, "/usr/bin/git"), CommandAction::deny);
  EXPECT_EQ(action(policy, "/usr//bin/./git"), CommandAction::deny);
  EXPECT_EQ(action(policy, "/opt/bin/git"), CommandAction::allow);
  EXPECT_EQ(action(policy, "git"), CommandAction::deny);  // which one it is, PATH decides
  EXPECT_TRUE(judge(policy, Command::of_line("git")).unclear);
}

TEST(CommandPolicy, JudgesArgumentListsWithoutAShell) {
  auto policy = policy_of(kNoRm);
  EXPECT_EQ(judge(policy, Command::of_argv({"echo", "$(rm x)"})).action, CommandAction::allow);
  EXPECT_EQ(judge(policy, Command::of_argv({"rm"})).action, CommandAction::deny);
  EXPECT_EQ(judge(policy, Command::of_argv({"sh", "-c", "rm x"})).action, CommandAction::deny);
  EXPECT_EQ(judge(policy, Command::of_argv({"$X"})).action, CommandAction::allow);
  auto command = Command::of_argv({"ls"});
  command.variables = {"HOME", "LD_PRELOAD"};
  EXPECT_EQ(judge(policy, command).action, CommandAction::deny);
}

TEST(CommandPolicy, CodeIsAProgramOfItsLanguage) {
  auto policy = policy_of(R"({"rules":[{"program":"code:python","action":"deny"},{"program":"rm","action":"deny"}]})");
  EXPECT_EQ(judge(policy, Command::of_code("python", "1")).action, CommandAction::deny);
  EXPECT_EQ(judge(policy, Command::of_code("Python", "1")).action, CommandAction::deny);
  EXPECT_EQ(judge(policy, Command::of_code("javascript", "1")).action, CommandAction::allow);
  EXPECT_EQ(judge(policy, Command::of_code("", "1")).action, CommandAction::deny) << "it may be python";
  EXPECT_EQ(judge(policy, Command::of_code("bash", "echo; rm x")).action, CommandAction::deny);
  EXPECT_EQ(judge(policy, Command::of_code("bash", "echo")).action, CommandAction::allow);
}

TEST(CommandPolicy, ATerminalIsUnclearUnlessARuleNamesIt) {
  EXPECT_EQ(judge(policy_of(kNoRm), Command::of_terminal()).action, CommandAction::deny);
  auto named = policy_of(R"({"rules":[{"program":"rm","action":"deny"},{"program":"terminal","action":"allow"}]})");
  EXPECT_EQ(judge(named, Command::of_terminal()).action, CommandAction::allow);
  EXPECT_EQ(judge(named, Command::of_terminal("rm x")).action, CommandAction::deny);
  auto wide = policy_of(R"({"rules":[{"program":"rm","action":"deny"},{"program":"*","action":"allow"}]})");
  EXPECT_EQ(judge(wide, Command::of_terminal()).action, CommandAction::deny);
  auto typed = Command::of_argv({"python3"});
  typed.typed = true;
  EXPECT_EQ(judge(policy_of(kNoRm), typed).action, CommandAction::deny);
  EXPECT_EQ(judge(named, typed).action, CommandAction::allow);
}

TEST(CommandPolicy, SaysWhichRuleAndWhy) {
  auto verdict = judge(policy_of(kNoRm), Command::of_line("ls; rm -rf /"));
  EXPECT_EQ(verdict.sentence(), R"(rule "no-rm" applies to "rm -rf /": files are kept)");
  auto by_default = judge(policy_of(R"({"default":"deny"})"), Command::of_line("ls"));
  EXPECT_EQ(by_default.sentence(), R"(the default of the policy applies to "ls")");
}

TEST(CommandPolicy, RefusesPoliciesItDoesNotUnderstand) {
  struct Row {
    std::string_view text, field;
  };
  constexpr Row kRows[] = {
      {R"({"defualt":"deny"})", "defualt"},
      {R"({"default":"maybe"})", "default"},
      {R"({"rules":{}})", "rules"},
      {R"({"rules":[{"action":"deny"}]})", "rules[0]"},
      {R"({"rules":[{"program":"a"}]})", "rules[0]"},
      {R"({"rules":[{"program":"a","action":"deny","args":"b"}]})", "rules[0].args"},
      {R"({"rules":[{"program":"a","action":"no"}]})", "rules[0].action"},
      {R"({"rules":[{"program":"[","action":"deny"}]})", "rules[0].program"},
      {R"({"rules":[{"program":["a",1],"action":"deny"}]})", "rules[0].program[1]"},
      {R"({"rules":[{"program":[],"action":"deny"}]})", "rules[0].program"},
      {R"({"ask_timeout_seconds":0})", "ask_timeout_seconds"},
      {R"({"ask_timeout_seconds":1e9})", "ask_timeout_seconds"},
  };
  for (const auto& row : kRows) {
    auto policy = parse_command_policy(row.text);
    ASSERT_FALSE(policy) << row.text;
    EXPECT_EQ(policy.error().field(), row.field) << row.text;
  }
  EXPECT_FALSE(parse_command_policy(std::string(kMaxPolicyBytes + 1, ' ')));
}

TEST(CommandPolicy, TheWorkOfOneVerdictIsBounded) {
  std::string rules;
  std::string pattern;
  for (int i = 0; i < 60; ++i) pattern += "a*?";
  for (std::size_t i = 0; i < kMaxCommandRules; ++i)
    rules += cat(i ? "," : "", R"({"program":"ls","args_any":")", pattern, R"(b","action":"deny"})");
  std::string line = "ls";
  for (int i = 0; i < 60; ++i) line += cat(" ", std::string(2000, 'a'));
  auto verdict = judge(policy_of(cat(R"({"rules":[)", rules, "]}")), Command::of_line(line));
  EXPECT_EQ(verdict.action, CommandAction::deny);  // not finished is not clear
}

}  // namespace
}  // namespace osb
