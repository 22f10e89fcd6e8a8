// Commands through a running execd, as clients see them.
#include "base/base64.h"
#include "execd/daemon_fixture.h"

namespace osb::execd {
namespace {

using Texts = std::vector<std::string>;

class CommandTest : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    start();
  }
};

TEST_F(CommandTest, PingIsAnEmptySuccess) {
  auto reply = ask("GET", "/ping", {}, "X-Request-ID: abc-1\r\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.has("\r\nContent-Length: 0\r\n"));
  EXPECT_TRUE(reply.has("\r\nX-Request-ID: abc-1\r\n"));
}

TEST_F(CommandTest, StreamHasTheExactFraming) {
  auto reply = command("echo hello");
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.has("\r\nContent-Type: text/event-stream\r\n"));
  EXPECT_TRUE(reply.has("\r\nCache-Control: no-cache\r\n"));
  EXPECT_TRUE(reply.has("\r\nX-Accel-Buffering: no\r\n"));
  // A command that is over at once is answered whole; one that lasts is streamed.
  EXPECT_NE(reply.has("\r\nTransfer-Encoding: chunked\r\n"), reply.has("\r\nContent-Length: "));
  EXPECT_TRUE(command("sleep 0.2; echo hello").has("\r\nTransfer-Encoding: chunked\r\n"));
  auto lines = split(reply.body, '\n');
  ASSERT_EQ(lines.size(), 9u) << reply.body;
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(lines[i].empty(), i % 2 == 1) << "an event, an empty line";
  auto events = events_of(reply.body);
  Texts types;
  for (const Event& event : events) types.push_back(text_of(event, "type"));
  EXPECT_EQ(types, (Texts{"init", "ping", "stdout", "execution_complete"}));
  std::string id = text_of(events[0], "text");
  EXPECT_EQ(id.size(), 32u);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(text_of(events[2], "text"), "hello");
  EXPECT_GE(events[3].at("execution_time").as_int64(), 0);
}

TEST_F(CommandTest, OutputComesByLine) {
  EXPECT_EQ(output_of(run(R"(printf 'a\n\nb\n\n\nc\n')")),
            (Texts{"stdout:a", "stdout:\n", "stdout:b", "stdout:\n", "stdout:\n", "stdout:c"}));
  EXPECT_EQ(output_of(run(R"(printf '1\r2\r'; sleep 0.05; printf '\n3')")), (Texts{"stdout:1", "stdout:2", "stdout:3"}));
  EXPECT_EQ(output_of(run("echo out; echo err >&2; echo out2")).size(), 3u);
  EXPECT_TRUE(output_of(run("true")).empty());
}

TEST_F(CommandTest, TextOutsideAsciiArrivesEscapedAndWhole) {
  auto reply = command(R"(printf 'gr\303\274n \342\202\254 \377\n')");
  for (char c : reply.body) ASSERT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
  EXPECT_EQ(output_of(events_of(reply.body)), (Texts{"stdout:gr\xc3\xbcn \xe2\x82\xac \xef\xbf\xbd"}));
}

TEST_F(CommandTest, LongOutputArrivesWhole) {
  auto lines = output_of(run("seq 1 100000"));
  ASSERT_EQ(lines.size(), 100'000u);
  EXPECT_EQ(lines.front(), "stdout:1");
  EXPECT_EQ(lines.back(), "stdout:100000");
  std::size_t bytes = 0;
  for (const std::string& piece : output_of(run("head -c 300000 /dev/zero | tr '\\0' x"))) {
    EXPECT_LT(piece.size(), 70'000u);
    bytes += piece.size() - 7;
  }
  EXPECT_EQ(bytes, 300'000u);
}

// What a raw command wrote to one of its outputs, byte for byte.
std::string bytes_of(const std::vector<Event>& events, std::string_view type) {
  std::string out;
  for (const Event& event : events) {
    if (text_of(event, "type") != type) continue;
    out += event.contains("base64") ? *decode_base64(text_of(event, "base64")) : text_of(event, "text");
  }
  return out;
}

TEST_F(CommandTest, RawOutputComesByteForByte) {
  auto events = run(R"(printf 'a\n\r\nb\303'; sleep 0.05; printf '\274\377\000c'; echo err >&2)", R"(,"raw":true)");
  EXPECT_EQ(bytes_of(events, "stdout"), std::string("a\n\r\nb\xc3\xbc\xff\0c", 10));
  EXPECT_EQ(bytes_of(events, "stderr"), "err\n");
  EXPECT_EQ(bytes_of(run("seq 1 20000 | tr '\\n' '\\377'", R"(,"raw":true)"), "stdout").size(), 108'894u);
  EXPECT_EQ(bytes_of(run(R"(printf 'half \303')", R"(,"raw":true)"), "stdout"), "half \xc3");
}

TEST_F(CommandTest, AnArgumentListIsExecutedAsItIsWithItsInput) {
  auto input = cat(R"({"argv":["cat"],"raw":true,"input":")", base64(std::string(700'000, 'x')), "\"}");
  EXPECT_EQ(bytes_of(events_of(ask("POST", "/command", input).body), "stdout"), std::string(700'000, 'x'));
  auto word = events_of(ask("POST", "/command", R"({"argv":["printf","%s|","a b","$HOME"]})").body);
  EXPECT_EQ(output_of(word), (Texts{"stdout:a b|$HOME|"}));
  EXPECT_EQ(output_of(events_of(ask("POST", "/command", R"({"command":"cat; echo done","input":""})").body)), (Texts{"stdout:done"}));
  // One that does not read its input, and one that ends in the middle of it.
  auto big = base64(std::string(500'000, 'y'));
  EXPECT_EQ(output_of(run("head -c 1", cat(R"(,"input":")", big, "\""))), (Texts{"stdout:y"}));
  EXPECT_EQ(output_of(run("echo no", cat(R"(,"input":")", big, "\""))), (Texts{"stdout:no"}));
  for (const char* bad : {R"({"argv":[]})", R"({"argv":["a"],"command":"b"})", R"({"command":"cat","input":"%"})",
                          R"({"command":"cat","input":"","background":true})"})
    EXPECT_EQ(ask("POST", "/command", bad).status, 400) << bad;
}

TEST_F(CommandTest, EveryExitCodeArrives) {
  for (int code = 0; code < 256; ++code) {
    auto events = run(cat("exit ", code));
    if (code == 0)
      EXPECT_EQ(text_of(events.back(), "type"), "execution_complete");
    else
      EXPECT_EQ(error_code_of(events), cat(code));
    for (std::size_t i = 0; i + 1 < events.size(); ++i) EXPECT_NE(text_of(events[i], "type"), "execution_complete");
  }
}

TEST_F(CommandTest, DeathBySignalIs128PlusItsNumber) {
  for (int signal : {SIGHUP, SIGINT, SIGABRT, SIGKILL, SIGSEGV, SIGPIPE, SIGTERM, SIGUSR1}) {
    auto events = run(cat("kill -", signal, " $$"));
    EXPECT_EQ(error_code_of(events), cat(128 + signal));
    EXPECT_EQ(text_of(events.back(), "cause"), "signalled");
  }
}

TEST_F(CommandTest, AMissingProgramSpeaksInTheShellsWords) {
  auto events = run("nonexistent-command-4711");
  EXPECT_EQ(output_of(events), (Texts{"stderr:bash: line 1: nonexistent-command-4711: command not found"}));
  EXPECT_EQ(error_code_of(events), "127");
  EXPECT_EQ(text_of(events.back(), "cause"), "not_found");
  EXPECT_FALSE(text_of(events.back(), "advice").empty());
}

TEST_F(CommandTest, BadRequestsAreRefusedBeforeAnyEvent) {
  for (const char* body : {"", "{", "{}", R"({"command":""})", R"({"command":"ls","gid":0})", R"({"command":"ls","cwd":"/nonexistent"})",
                           R"({"command":"ls","cwd":"/etc/passwd"})", R"({"command":"ls","cwd":"$NOT_SET_4711"})",
                           R"({"command":"ls","cwd":"/proc/self/fd/0"})", R"({"command":"ls","cwd":"/proc/self/cwd"})",
                           R"({"command":"ls","cwd":"/proc/1/root"})", R"({"command":"ls","cwd":"/proc/self/root/usr"})"}) {
    auto reply = ask("POST", "/command", body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_NE(reply.body.find("\"code\":\"INVALID_REQUEST_BODY\""), std::string::npos) << reply.body;
  }
  for (int fd = 3; fd < 20; ++fd) EXPECT_EQ(command("pwd", cat(",\"cwd\":\"/proc/self/fd/", fd, "\"")).status, 400);
  EXPECT_EQ(ask("POST", "/command", cat("{\"command\":\"", std::string(2'200'000, 'x'), "\"}")).status, 413);
}

TEST_F(CommandTest, RunsWhereItIsAskedTo) {
  EXPECT_EQ(output_of(run("pwd", ",\"cwd\":\"/usr/bin\"")), (Texts{"stdout:/usr/bin"}));
  EXPECT_EQ(output_of(run("pwd", ",\"cwd\":\"/proc\"")), (Texts{"stdout:/proc"})) << "only the links out of it are refused";
  EXPECT_EQ(output_of(run("pwd", ",\"cwd\":\"~\"")), (Texts{cat("stdout:", ::getenv("HOME") ? ::getenv("HOME") : "/")}));
}

TEST_F(CommandTest, EnvironmentOfARequestIsForItAlone) {
  EXPECT_EQ(output_of(run("echo $GREETING", R"(,"envs":{"GREETING":"hi there"})")), (Texts{"stdout:hi there"}));
  EXPECT_EQ(output_of(run("echo .$GREETING.")), (Texts{"stdout:.."}));
}

TEST_F(CommandTest, ProgramsStartWithThreeDescriptorsAndStandardSignals) {
  EXPECT_EQ(output_of(run("ls /proc/self/fd | wc -l")), (Texts{"stdout:4"})) << "0, 1, 2 and the one ls reads with";
  EXPECT_EQ(output_of(run("ls -l /proc/self/fd/0 | sed 's/.*-> //'")), (Texts{"stdout:/dev/null"}));
  EXPECT_EQ(output_of(run("grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '\\t'")),
            (Texts{"stdout:SigBlk:0000000000000000", "stdout:SigIgn:0000000000000000"}));
  EXPECT_EQ(output_of(run("ps -o pid=,pgid=,sid= -p $$ | awk '{print ($1==$2 && $2==$3)}'")), (Texts{"stdout:1"}));
  EXPECT_EQ(output_of(run("ulimit -Sn")), (Texts{cat("stdout:", [] {
              rlimit files{};
              ::getrlimit(RLIMIT_NOFILE, &files);
              return files.rlim_cur;
            }())}));
}

TEST_F(CommandTest, RunsAsAnotherUserWhenAsked) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  auto who = output_of(run("id -u; id -g; id -G", ",\"uid\":54321"));
  EXPECT_EQ(who, (Texts{"stdout:54321", "stdout:54321", "stdout:54321"})) << "a uid without an entry is its own group";
  EXPECT_EQ(output_of(run("id -u; id -g", ",\"uid\":54321,\"gid\":7")), (Texts{"stdout:54321", "stdout:7"}));
  EXPECT_EQ(command("pwd", ",\"uid\":54321,\"cwd\":\"/root\"").status, ::access("/root", X_OK) == 0 ? 400 : 200)
      << "as that user, not as execd";
  EXPECT_EQ(output_of(run("grep CapEff /proc/self/status | tr -d '\\t'", ",\"uid\":54321")), (Texts{"stdout:CapEff:0000000000000000"}));
}

TEST_F(CommandTest, ReturnsWhenTheLeaderEndsAndLetsItsChildrenWriteOn) {
  auto begun = std::chrono::steady_clock::now();
  auto done = file("done");
  auto events = run(cat("(sleep 0.3; echo late; echo later; touch ", done, ") & sleep 60 & echo now"));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s);
  EXPECT_EQ(output_of(events), (Texts{"stdout:now"}));
  EXPECT_EQ(text_of(events.back(), "type"), "execution_complete");
  EXPECT_TRUE(eventually([&] { return ::access(done.c_str(), F_OK) == 0; })) << "the job was not killed for writing";
}

TEST_F(CommandTest, WhatAChildWritesRightAfterTheLeaderEndedDoesNotKillIt) {
  // The job floods the pipe while the leader ends: whatever the moment, the job must survive it.
  for (int i = 0; i < 20; ++i) {
    auto done = file(cat("done", i));
    run(cat("(seq 1 20000; touch ", done, ") & :"));
    EXPECT_TRUE(eventually([&] { return ::access(done.c_str(), F_OK) == 0; })) << i;
  }
}

TEST_F(CommandTest, KeepAliveConnectionCarriesOneCommandAfterTheOther) {
  Wire wire = connect();
  for (int i = 0; i < 50; ++i) {
    wire.request("POST", "/command", cat("{\"command\":\"echo ", i, "\"}"));
    EXPECT_EQ(output_of(events_of(wire.reply().body)), (Texts{cat("stdout:", i)}));
  }
}

TEST_F(CommandTest, LongSilenceIsFilledWithPings) {
  auto events = run("sleep 3.4");
  auto pings = std::count_if(events.begin(), events.end(), [](const Event& event) { return text_of(event, "type") == "ping"; });
  EXPECT_EQ(pings, 2) << "one after init, one after three seconds";
}

TEST_F(CommandTest, UnknownPathsAndMethodsAreSaidSo) {
  EXPECT_EQ(ask("GET", "/nope").status, 404);
  EXPECT_EQ(ask("PUT", "/command", "{}").status, 405);
  EXPECT_FALSE(ask("GET", "/nope").body.empty());
}

}  // namespace
}  // namespace osb::execd
