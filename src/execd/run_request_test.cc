#include "execd/run_request.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

namespace osb::execd {
namespace {

Setup native_setup() {
  auto setup = parse_setup(R"({"env":{"A":"1","D":"/srv"},"entrypoint":["sleep","infinity"],"cwd":"/workspace","uid":61000,"gid":61001,
                               "home":"/home/user","keep_caps":false,"audit_exec":true})");
  EXPECT_TRUE(setup);
  complete_setup(*setup);
  return *std::move(setup);
}

TEST(Setup, IsReadFromItsText) {
  auto setup = native_setup();
  EXPECT_TRUE(setup.native);
  EXPECT_EQ(setup.who.uid, 61000u);
  EXPECT_EQ(setup.who.gid, 61001u);
  EXPECT_EQ(setup.cwd, "/workspace");
  EXPECT_EQ(setup.env["HOME"], "/home/user");
  EXPECT_EQ(setup.env["A"], "1");
  EXPECT_TRUE(setup.entrypoint.empty()) << "execd itself holds the sandbox open";
}

TEST(Setup, RefusesWhatItCannotMean) {
  EXPECT_FALSE(parse_setup("not json"));
  EXPECT_FALSE(parse_setup("{}")) << "a sandbox without a user";
  EXPECT_FALSE(parse_setup(R"({"uid":1,"gid":-1})"));
  EXPECT_FALSE(parse_setup(R"({"uid":4294967295,"gid":1})"));
  EXPECT_FALSE(parse_setup(R"({"uid":1,"gid":1,"cwd":"relative"})"));
  EXPECT_FALSE(parse_setup(R"({"uid":1,"gid":1,"entrypoint":"sleep infinity"})"));
}

TEST(Setup, KnowsEntrypointsThatOnlyWait) {
  EXPECT_TRUE(only_waits({}));
  EXPECT_TRUE(only_waits({"tail", "-f", "/dev/null"}));
  EXPECT_TRUE(only_waits({"sleep", "infinity"}));
  EXPECT_FALSE(only_waits({"sleep", "10"}));
  EXPECT_FALSE(only_waits({"tail", "-f", "/dev/null", "x"}));
}

TEST(CommandRequest, ReadsAllFields) {
  auto request = parse_command_request(
      R"({"command":"ls","cwd":"/x","background":true,"timeout":1500,"uid":7,"gid":8,"envs":{"K":"v"},"unknown":[1]} trailing)");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->command, "ls");
  EXPECT_EQ(request->cwd, "/x");
  EXPECT_TRUE(request->background);
  EXPECT_EQ(request->timeout->count(), 1500);
  EXPECT_EQ(request->uid, 7u);
  EXPECT_EQ(request->gid, 8u);
  EXPECT_EQ(request->env.at("K"), "v");
}

TEST(CommandRequest, NullAndZeroMeanAbsent) {
  auto request = parse_command_request(R"({"command":"ls","cwd":null,"timeout":0,"uid":null,"envs":null,"background":null})");
  ASSERT_TRUE(request);
  EXPECT_FALSE(request->timeout);
  EXPECT_FALSE(request->uid);
}

TEST(CommandRequest, RefusesBadInput) {
  for (const char* body : {"",
                           "null",
                           "[]",
                           "{",
                           R"({"command":""})",
                           R"({})",
                           R"({"command":1})",
                           R"({"command":"x","timeout":-1})",
                           R"({"command":"x","timeout":"1"})",
                           R"({"command":"x","timeout":1.5})",
                           R"({"command":"x","gid":1})",
                           R"({"command":"x","uid":-1})",
                           R"({"command":"x","uid":4294967295})",
                           R"({"command":"x","uid":4294967296})",
                           R"({"command":"x","envs":{"A":1}})",
                           R"({"command":"x","envs":{"A=B":"1"}})",
                           R"({"command":"x","envs":{"":"1"}})",
                           R"({"command":"x","envs":{"A":"\u0000"}})",
                           R"({"command":"a\u0000b"})",
                           R"({"command":"x","background":"yes"})"}) {
    auto request = parse_command_request(body);
    EXPECT_FALSE(request) << body;
  }
  EXPECT_FALSE(parse_command_request("{\"command\":\"" + std::string(kMaxCommandBytes + 1, 'x') + "\"}"));
  EXPECT_TRUE(parse_command_request("{\"command\":\"" + std::string(kMaxCommandBytes, 'x') + "\"}"));
  EXPECT_FALSE(parse_command_request(std::string(100'000, '['))) << "deep nesting";
}

TEST(ExecRequest, NeedsAProgram) {
  EXPECT_TRUE(parse_exec_request(R"({"argv":["ls","-l"],"stdin":true,"timeout_ms":5,"env":{"A":"b"}})"));
  EXPECT_FALSE(parse_exec_request(R"({"argv":[]})"));
  EXPECT_FALSE(parse_exec_request(R"({"argv":[""]})"));
  EXPECT_FALSE(parse_exec_request(R"({"argv":["ls",1]})"));
  EXPECT_FALSE(parse_exec_request(R"({"argv":"ls"})"));
}

TEST(Prepare, CompletesARequestFromTheSandbox) {
  RunRequest request;
  request.command = "ls $A";
  request.env = {{"A", "2"}};
  auto start = prepare(native_setup(), request);
  ASSERT_TRUE(start);
  EXPECT_EQ(start->cwd, "/workspace");
  EXPECT_TRUE(start->cwd_may_be_missing);
  EXPECT_EQ(start->env["A"], "2");
  EXPECT_EQ(start->env["PWD"], "/workspace");
  EXPECT_EQ(start->who->uid, 61000u);
  EXPECT_EQ(start->attempts.size(), 2u) << "bash or sh";
}

TEST(Prepare, TheCallersDirectoryMustExist) {
  RunRequest request;
  request.command = "ls";
  request.cwd = "$D/x";
  auto start = prepare(native_setup(), request);
  ASSERT_TRUE(start);
  EXPECT_EQ(start->cwd, "/srv/x");
  EXPECT_FALSE(start->cwd_may_be_missing);
  request.cwd = "$MISSING";
  EXPECT_FALSE(prepare(native_setup(), request));
}

TEST(Prepare, ExecdsOwnUserIsNotForPrograms) {
  RunRequest request;
  request.command = "ls";
  request.uid = kAgentUid;
  EXPECT_FALSE(prepare(native_setup(), request));
  request.uid = kAgentUid - 1;
  auto start = prepare(native_setup(), request);
  ASSERT_TRUE(start);
  EXPECT_EQ(start->who->uid, kAgentUid - 1);
}

TEST(Prepare, TheEnvironmentFileIsReadEachTime) {
  char path[] = "/tmp/execd-envs-XXXXXX";
  ASSERT_GE(::close(::mkstemp(path)), 0);
  auto setup = native_setup();
  setup.env["EXECD_ENVS"] = path;
  RunRequest request;
  request.command = "ls";
  for (const char* value : {"one", "two"}) {
    std::ofstream(path) << "FROM_FILE=" << value << "-$A\n";
    auto start = prepare(setup, request);
    ASSERT_TRUE(start);
    EXPECT_EQ(start->env["FROM_FILE"], std::string(value) + "-1");
  }
  ::unlink(path);
}

}  // namespace
}  // namespace osb::execd
