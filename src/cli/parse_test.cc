#include "cli/parse.h"

#include <gtest/gtest.h>

#include "cli/commands.h"
#include "cli/create.h"
#include "cli/exec.h"
#include "cli/run.h"

namespace osb::cli {
namespace {

using Words = std::vector<std::string>;

Result<Parsed> parsed(const Words& words) { return parse(words); }

Args args_of(const Words& words) {
  auto result = parse(words);
  EXPECT_TRUE(result) << (result ? "" : result.error().what());
  return result ? std::move(result->args) : Args{};
}

std::string hint_of(const Words& words) {
  auto result = parse(words);
  EXPECT_FALSE(result);
  return result ? "" : result.error().hint();
}

TEST(Parse, OptionsOfRunEndWhereTheCommandBegins) {
  auto args = args_of({"run", "-e", "A=1", "--memory=64Mi", "ls", "-l", "--env", "x"});
  EXPECT_EQ(args.all("env"), Words{"A=1"});
  EXPECT_EQ(args.get("memory"), "64Mi");
  EXPECT_EQ(args.words, (Words{"ls", "-l", "--env", "x"}));
}

TEST(Parse, TwoDashesHandEverythingOverAsItIs) {
  auto args = args_of({"run", "--rw", "--", "--rw", "--", "-x", ""});
  EXPECT_TRUE(args.has("rw"));
  EXPECT_EQ(args.words, (Words{"--rw", "--", "-x", ""}));
}

TEST(Parse, ExecTakesTheIdAndThenTheCommand) {
  auto args = args_of({"exec", "-w", "/", "abc", "sh", "-c", "exit 3"});
  EXPECT_EQ(args.operands, Words{"abc"});
  EXPECT_EQ(args.words, (Words{"sh", "-c", "exit 3"}));
  EXPECT_EQ(args_of({"exec", "abc", "--", "-l"}).words, Words{"-l"});
  EXPECT_FALSE(parsed({"exec", "abc"}));
}

TEST(Parse, RepeatedOptionsKeepTheirOrderAndTheLastOfTheOthersCounts) {
  auto args = args_of({"run", "-e", "A=1", "-eB=2", "--env=C=3", "--mode", "root", "--mode", "user", "true"});
  EXPECT_EQ(args.all("env"), (Words{"A=1", "B=2", "C=3"}));
  EXPECT_EQ(args.get("mode"), "user");
}

TEST(Parse, ValuesAreTakenLiterally) {
  auto args = args_of({"run", "-e", "A=[1,2]", "-e", "B=%%", "-e", "C=", "-e", "D=-x", "true"});
  EXPECT_EQ(args.all("env"), (Words{"A=[1,2]", "B=%%", "C=", "D=-x"}));
}

TEST(Parse, OptionsMayStandBeforeTheCommandsName) {
  auto args = args_of({"--host", "unix:///x", "ls", "-q"});
  EXPECT_EQ(args.get("host"), "unix:///x");
  EXPECT_TRUE(args.has("quiet"));
}

TEST(Parse, OperandsAndOptionsMix) {
  auto args = args_of({"logs", "abc", "-f", "cmd"});
  EXPECT_EQ(args.operands, (Words{"abc", "cmd"}));
  EXPECT_TRUE(args.has("follow"));
}

TEST(Parse, WrongLinesAreUsageErrors) {
  for (const Words& words :
       {Words{"run"}, Words{"run", "--"}, Words{"run", "--memory"}, Words{"run", "--no-such", "--", "true"}, Words{"inspect"},
        Words{"ls", "stray"}, Words{"run", "--mode", "god", "true"}, Words{"image"}, Words{"ls", "-o", "xml"}}) {
    auto result = parse(words);
    ASSERT_FALSE(result) << words.back();
    EXPECT_TRUE(is_usage_error(result.error())) << words.back();
  }
}

TEST(Parse, NearMissesGetASuggestion) {
  EXPECT_EQ(hint_of({"inspct", "x"}), "did you mean 'inspect'?");
  EXPECT_EQ(hint_of({"image", "imprt", "x"}), "did you mean 'image import'?");
  EXPECT_EQ(hint_of({"run", "--memroy", "1Gi", "--", "true"}), "did you mean --memory?");
  EXPECT_EQ(hint_of({"ls", "-o", "jsn"}), "did you mean json?");
  EXPECT_EQ(hint_of({"zzzzzzzzzzzz"}), "`opensandbox help` lists the commands");
}

TEST(Parse, OtherNamesFindTheSameCommand) {
  EXPECT_EQ(parsed({"ps"})->command, &kList);
  EXPECT_EQ(parsed({"rm", "x"})->command, &kKill);
  EXPECT_EQ(parsed({"sandbox", "list"})->command, &kList);
  EXPECT_EQ(parsed({"sandbox", "get", "x"})->command, &kInspect);
  EXPECT_EQ(parsed({"--version"})->command, &kVersion);
}

TEST(Parse, HelpNeedsNothingElse) {
  EXPECT_TRUE(parsed({"run", "--help"})->wants_help);
  EXPECT_TRUE(parsed({"inspect", "-h"})->wants_help);
  EXPECT_TRUE(parsed({"--help"})->wants_help);
  EXPECT_FALSE(parsed({"run", "--", "ls", "--help"})->wants_help);
}

TEST(RunOptions, BecomeARequest) {
  auto options =
      read_run_options(args_of({"run", "--memory", "64Mi", "--cpus", "0.5", "--mode", "root", "--rw", "--name", "x", "-w", "/tmp", "id"}));
  ASSERT_TRUE(options);
  auto request = to_json(options->sandbox);
  EXPECT_EQ(request.at("resourceLimits").at("memory").as_string(), "64Mi");
  EXPECT_EQ(request.at("resourceLimits").at("cpu").as_string(), "0.5");
  EXPECT_EQ(request.at("extensions").at("opensandbox.mode").as_string(), "root");
  EXPECT_EQ(request.at("extensions").at("opensandbox.root").as_string(), "rw");
  EXPECT_EQ(request.at("metadata").at("name").as_string(), "x");
  EXPECT_EQ(request.at("timeout").as_int64(), 60);
  EXPECT_EQ(options->command.directory, "/tmp");
}

TEST(RunOptions, LeaveTheSandboxLongerThanTheCommand) {
  auto options = read_run_options(args_of({"run", "--timeout", "2m", "true"}));
  ASSERT_TRUE(options);
  EXPECT_EQ(options->command.timeout, Millis(120'000));
  EXPECT_GT(*options->sandbox.lifetime, std::chrono::seconds(120));
}

TEST(RunOptions, RefuseWhatTheDaemonWouldRefuse) {
  for (const Words& words :
       {Words{"run", "--memory", "lots", "true"}, Words{"run", "--memory", "0", "true"}, Words{"run", "--cpus", "-1", "true"},
        Words{"run", "--pids", "1000000", "true"}, Words{"run", "--timeout", "0", "true"}, Words{"run", "-e", "1A=x", "true"},
        Words{"run", "--metadata", "no-equals", "true"}}) {
    auto options = read_run_options(args_of(words));
    ASSERT_FALSE(options) << words[2];
    EXPECT_TRUE(is_usage_error(options.error())) << words[2];
  }
}

TEST(RunOptions, PassAVariableOfOurOwn) {
  ::setenv("OSB_CLI_TEST", "here", 1);
  auto options = read_run_options(args_of({"run", "-e", "OSB_CLI_TEST", "-e", "OSB_NOT_SET", "true"}));
  ASSERT_TRUE(options);
  EXPECT_EQ(options->command.env, (StringMap{{"OSB_CLI_TEST", "here"}}));
}

TEST(CreateOptions, LiveAnHourUnlessToldOtherwise) {
  EXPECT_EQ(read_create_options(args_of({"create"}))->lifetime, std::chrono::seconds(3600));
  EXPECT_EQ(read_create_options(args_of({"create", "-t", "none"}))->lifetime, std::nullopt);
  EXPECT_EQ(read_create_options(args_of({"create", "-t", "5m"}))->lifetime, std::chrono::seconds(300));
  EXPECT_FALSE(read_create_options(args_of({"create", "-t", "5s"})));
}

TEST(CreateOptions, TakeACommand) {
  EXPECT_EQ(read_create_options(args_of({"create"}))->entrypoint, (Words{"tail", "-f", "/dev/null"}));
  EXPECT_EQ(read_create_options(args_of({"create", "--", "sleep", "5"}))->entrypoint, (Words{"sleep", "5"}));
}

TEST(ExecOptions, KnowWhoRunsIt) {
  EXPECT_EQ(read_exec_options(args_of({"exec", "-u", "root", "x", "id"}))->uid, 0u);
  auto both = read_exec_options(args_of({"exec", "-u", "12:34", "x", "id"}));
  EXPECT_EQ(both->uid, 12u);
  EXPECT_EQ(both->gid, 34u);
  EXPECT_FALSE(read_exec_options(args_of({"exec", "-u", "nobody-here", "x", "id"})));
  EXPECT_FALSE(read_exec_options(args_of({"exec", "-u", "70000", "x", "id"})));
}

TEST(ExecBody, IsTheJsonExecdReads) {
  RemoteCommand command{.argv = {"a", "b\n"}, .env = {{"K", "v"}}, .directory = "/w", .uid = 5, .gid = {}, .timeout = Millis(1500)};
  EXPECT_EQ(*exec_body(command, true), R"({"argv":["a","b\n"],"env":{"K":"v"},"cwd":"/w","uid":5,"timeout_ms":1500,"stdin":true})");
}

TEST(ExecBody, RefusesBytesThatJsonCannotHold) {
  EXPECT_TRUE(exec_body({.argv = {"\xC3\xA4 \xEF\xBF\xBD"}, .env = {}, .directory = {}, .uid = {}, .gid = {}, .timeout = {}}, false));
  auto refused = exec_body({.argv = {"\xFF"}, .env = {}, .directory = {}, .uid = {}, .gid = {}, .timeout = {}}, false);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(is_usage_error(refused.error()));
}

}  // namespace
}  // namespace osb::cli
