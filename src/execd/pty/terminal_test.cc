#include "execd/pty/terminal.h"

#include "execd/pty/ws_wire.h"

namespace osb::execd {
namespace {

TEST_F(TerminalTest, IsMadeWithoutStartingAnything) {
  auto id = create();
  EXPECT_EQ(id.size(), 32u);
  auto made = state(id);
  EXPECT_EQ(made.at("running"), false);
  EXPECT_EQ(made.at("output_offset"), 0);
  EXPECT_EQ(text_of(made, "session_id"), id);
  EXPECT_EQ(ask("DELETE", cat("/pty/", id)).status, 200);
  for (auto [method, path] : {std::pair{"GET", "/pty/"}, {"DELETE", "/pty/"}}) {
    auto reply = ask(method, cat(path, id));
    EXPECT_EQ(reply.status, 404);
    EXPECT_TRUE(reply.body.contains("CONTEXT_NOT_FOUND"));
  }
  EXPECT_EQ(attach(id).status(), 404);
}

TEST_F(TerminalTest, StartsInADirectoryThatItMakes) {
  auto id = create(cat(R"({"cwd":")", file("a/b"), R"(","unknown":1})"));
  auto ws = shell(id);
  ws.type("pwd\r");
  EXPECT_TRUE(ws.sees(cat("\r\n", file("a/b"), "\r\n"))) << ws.output;
}

TEST_F(TerminalTest, RefusesWishesThatMakeNoSense) {
  for (std::string_view bad :
       {"{", "[]", R"({"cwd":1})", R"({"command":true})", R"({"command":"a\u0000b"})", R"({"cwd":"$NOT_THERE_AT_ALL"})"})
    EXPECT_EQ(ask("POST", "/pty", bad).status, 400) << bad;
  auto reply = ask("POST", "/pty", R"({"cwd":"/proc/nowhere"})");
  EXPECT_EQ(reply.status, 500);
  EXPECT_TRUE(reply.body.contains("RUNTIME_ERROR"));
}

TEST_F(TerminalTest, HasRoomForSixtyFour) {
  for (std::size_t i = 0; i < Terminals::kMost; ++i) create();
  auto reply = ask("POST", "/pty");
  EXPECT_EQ(reply.status, 429);
  EXPECT_TRUE(reply.body.contains("64 terminals")) << reply.body;
}

TEST_F(TerminalTest, WantsAHandshakeAndAnOffset) {
  auto id = create();
  EXPECT_EQ(ask("GET", cat("/pty/", id, "/ws")).status, 400);
  EXPECT_EQ(attach(id, "?since=-1").status(), 400);
  EXPECT_EQ(attach(id, "?since=abc").status(), 400);
  EXPECT_EQ(state(id).at("running"), false);
}

TEST_F(TerminalTest, IsAShellWithATerminal) {
  auto id = create();
  auto ws = shell(id);
  EXPECT_EQ(state(id).at("running"), true);
  ws.type("stty size; tty\r");
  EXPECT_TRUE(ws.sees("24 80\r\n/dev/pts/")) << ws.output;
  ws.say(R"({"type":"resize","cols":0,"rows":40})");
  ws.say(R"({"type":"resize","cols":120,"rows":40})");
  ws.say(R"({"type":"stdin","data":"stty size\r"})");
  EXPECT_TRUE(ws.sees("\r\n40 120\r\n")) << ws.output;
  ws.say(R"({"type":"ping"})");
  EXPECT_EQ(ws.word(), R"({"type":"pong"})");
  ws.send(http::WsOpcode::ping, "are you there");
  EXPECT_EQ(ws.word(), "pong are you there");
  ws.type("exit 3\r");
  EXPECT_EQ(ws.word(), R"({"type":"exit","exit_code":3})");
  EXPECT_EQ(ws.word(), "1000 process exited");
  ws.send(http::WsOpcode::close, std::string_view("\x03\xe8", 2));
  EXPECT_TRUE(ws.wire().at_end());
  EXPECT_EQ(state(id).at("running"), false);
}

TEST_F(TerminalTest, KeepsApartWhatAPipeTells) {
  auto id = create(R"({"command":"echo out; echo err >&2; read x; echo got $x; exit 9"})");
  auto ws = attach(id, "?pty=0");
  EXPECT_EQ(ws.word(), connected(id, "pipe"));
  ws.type("hello\n");
  ws.say(R"({"type":"resize","cols":120,"rows":40})");
  EXPECT_EQ(ws.word(), R"({"type":"exit","exit_code":9})");
  EXPECT_EQ(ws.error_output, "err\n");
  EXPECT_TRUE(ws.output.contains("out\n") && ws.output.contains("got hello\n")) << ws.output;
  EXPECT_EQ(offset(id), std::string_view("out\nerr\ngot hello\n").size());
}

TEST_F(TerminalTest, GoesOnWithoutAClientAndReplaysFromAnOffset) {
  auto id = create();
  auto first = shell(id);
  auto seen = offset(id);
  first.type(cat("sleep 0.2; echo la''ter; touch ", file("done"), "\r"));
  ASSERT_TRUE(first.sees("la''ter"));  // its echo: what is on the way when a client leaves may be lost with it
  first.close();
  ASSERT_TRUE(eventually([&] { return ::access(file("done").c_str(), F_OK) == 0; }));
  auto second = attach(id, cat("?since=", seen));
  EXPECT_EQ(second.word(), connected(id));
  EXPECT_EQ(second.replayed_from, seen);
  EXPECT_TRUE(second.sees("later\r\n")) << second.output;
  second.type("echo al''ive\r");
  EXPECT_TRUE(second.sees("alive\r\n"));
  second.close();
  ASSERT_TRUE(eventually([&] { return attach(id, "?since=99999999").status() == 101; }));
  auto third = attach(id, "?takeover=1&since=99999999");
  EXPECT_EQ(third.word(), connected(id)) << "nothing to replay past the end";
  EXPECT_EQ(third.replayed_from, ~std::uint64_t{0});
}

// Every byte once: what was seen before the break and what is replayed after it make up the whole, wherever the break is.
TEST_F(TerminalTest, LosesAndRepeatsNothingAcrossABreak) {
  auto id = create(R"({"command":"stty -onlcr; i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; sleep 100"})");
  std::string whole;
  for (int i = 0; i < 20000; ++i) whole += cat("line ", i, "\n");
  std::string seen;
  for (std::size_t round = 1; seen.size() < whole.size(); ++round) {
    auto ws = attach(id, cat("?takeover=1&since=", seen.size()));
    ASSERT_EQ(ws.word(), connected(id));
    std::size_t enough = std::min(whole.size() - seen.size(), round * 700);
    while (ws.output.size() < enough) ASSERT_TRUE(ws.collects());
    seen += ws.output;
    ASSERT_TRUE(whole.starts_with(seen)) << "in round " << round;
    if (round % 2 == 0) ws.close();
  }
  EXPECT_EQ(seen, whole);
}

TEST_F(TerminalTest, LetsOneClientInUnlessItTakesOver) {
  auto id = create();
  auto first = shell(id);
  auto refused = attach(id);
  EXPECT_EQ(refused.status(), 409);
  EXPECT_TRUE(refused.body().contains("ALREADY_CONNECTED")) << refused.body();
  first.type("V=kept\r");
  auto second = attach(id, "?takeover=1");
  EXPECT_EQ(first.word(), "4001 TAKEN_OVER");
  EXPECT_EQ(second.word(), connected(id));
  EXPECT_EQ(second.replayed_from, 0u);
  second.type("echo $V-it\r");
  EXPECT_TRUE(second.sees("kept-it\r\n")) << "the same shell";
  auto third = attach(id, "?takeover=1");
  EXPECT_EQ(third.word(), connected(id));
  EXPECT_EQ(second.word(), "4001 TAKEN_OVER");
}

TEST_F(TerminalTest, StartsAgainAfterTheEnd) {
  auto id = create();
  auto first = shell(id);
  first.type("exit 1\r");
  EXPECT_EQ(first.word(), R"({"type":"exit","exit_code":1})");
  auto again = attach(id, cat("?pty=0&since=", offset(id)));
  EXPECT_EQ(again.word(), connected(id, "pipe")) << "whoever starts it says how";
  again.type("echo anew; exit 2\n");
  EXPECT_EQ(again.word(), R"({"type":"exit","exit_code":2})");
  EXPECT_EQ(again.output, "anew\n");
}

TEST_F(TerminalTest, SendsSignalsToWhatRunsInFront) {
  auto id = create();
  auto ws = shell(id);
  ws.type("echo g''o; cat\r");
  ASSERT_TRUE(ws.sees("go\r\n"));
  ws.type("in front\r");
  ASSERT_TRUE(ws.sees("in front\r\nin front\r\n")) << ws.output;
  ws.say(R"({"type":"signal","signal":"SIGWHAT"})");
  ws.say(R"({"type":"signal","signal":"SIGINT"})");
  ASSERT_TRUE(ws.sees("$ ")) << ws.output;
  ws.type("echo status $?\r");
  ASSERT_TRUE(ws.sees("status 130")) << ws.output;
  ws.say(R"({"type":"signal","signal":"SIGKILL"})");
  EXPECT_EQ(ws.word(), R"({"type":"exit","exit_code":137})");
}

TEST_F(TerminalTest, ReportsDeathByASignalAs128AndItsNumber) {
  auto id = create(R"({"command":"kill -9 $$"})");
  auto ws = attach(id);
  EXPECT_EQ(ws.word(), connected(id));
  EXPECT_EQ(ws.word(), R"({"type":"exit","exit_code":137})");
}

TEST_F(TerminalTest, DeletingEndsTheShellAndAllItStarted) {
  auto id = create();
  auto ws = shell(id);
  ws.type(cat("sleep 1000 & echo $! > ", file("child"), "\r"));
  pid_t child = pid_in(file("child"));
  EXPECT_EQ(ask("DELETE", cat("/pty/", id)).status, 200);
  EXPECT_TRUE(ws.word().contains("SESSION_GONE"));
  EXPECT_EQ(ws.word(), "1000 the session was deleted");
  EXPECT_TRUE(eventually([&] { return !alive(child); }));
}

TEST_F(TerminalTest, AnswersFramesThatMakeNoSense) {
  auto id = create(R"({"command":"sleep 100"})");
  auto ws = attach(id);
  EXPECT_EQ(ws.word(), connected(id));
  ws.say("not json");
  ws.say("[1]");
  ws.send(http::WsOpcode::binary, "\x07ignored");
  ws.send(http::WsOpcode::binary, "");
  ws.say(R"({"type":"fly"})");
  EXPECT_TRUE(ws.word().contains("INVALID_FRAME"));
  ws.say(R"({"no":"type"})");
  EXPECT_TRUE(ws.word().contains("INVALID_FRAME"));
  ws.wire().send("\x81\x01x");  // not masked
  EXPECT_TRUE(ws.word().starts_with("1002 "));
  EXPECT_EQ(state(id).at("running"), true);
}

TEST_F(TerminalTest, SaysThatAProgramDoesNotRead) {
  auto id = create(R"({"command":"exec <&-; echo closed; sleep 100"})");
  auto ws = attach(id, "?pty=0");
  EXPECT_EQ(ws.word(), connected(id, "pipe"));
  ASSERT_TRUE(ws.sees("closed\n"));
  ws.type("x");
  EXPECT_TRUE(ws.word().contains("STDIN_WRITE_FAILED"));
  EXPECT_TRUE(ws.word().starts_with("1000 "));
}

TEST_F(TerminalTest, SaysWhyItCannotStart) {
  auto id = create(cat(R"({"cwd":")", file("gone"), "\"}"));
  ASSERT_EQ(::rmdir(file("gone").c_str()), 0);
  auto ws = attach(id);
  EXPECT_EQ(ws.status(), 101);
  EXPECT_TRUE(ws.word().contains("START_FAILED"));
  EXPECT_TRUE(ws.word().starts_with("1011 "));
  ASSERT_EQ(::mkdir(file("gone").c_str(), 0755), 0);
  EXPECT_EQ(attach(id).word(), connected(id)) << "the place is free again";
}

std::size_t memory_of(pid_t pid) {
  auto text = read_text(cat("/proc/", pid, "/status"));
  return std::strtoul(text.c_str() + text.find("VmRSS:") + 6, nullptr, 10) * 1024;
}

TEST_F(TerminalTest, HoldsAMebibyteWhateverIsWritten) {
  // What is freed under the address sanitizer stays in memory for a while, so it is not measured there.
#if __has_feature(address_sanitizer)
  constexpr std::size_t kMayGrow = std::size_t{1} << 30;
#else
  constexpr std::size_t kMayGrow = 8 * 1024 * 1024;
#endif
  auto before = memory_of(pid_);
  auto id = create(cat(R"({"command":"head -c 8000000 /dev/zero | tr '\\0' x; touch )", file("done"), R"(; sleep 100"})"));
  {
    attach(id, "?pty=0").word();
  }  // starts it and leaves
  ASSERT_TRUE(eventually([&] { return offset(id) == 8000000; }));
  EXPECT_LT(memory_of(pid_), before + kMayGrow);
  auto ws = attach(id, "?takeover=1");
  EXPECT_EQ(ws.word(), connected(id, "pipe"));
  EXPECT_EQ(ws.output.size(), http::kWsMessageBytes - 9) << "one message of a mebibyte";
  EXPECT_EQ(ws.replayed_from, 8000000 - ws.output.size());
}

TEST_F(TerminalTest, WaitsForASlowClientAndDropsNothing) {
  auto id = create(R"({"command":"head -c 5000000 /dev/zero | tr '\\0' x; exit 4"})");
  auto ws = attach(id, "?pty=0");
  // The client reads nothing: what is written stays within what is kept for it and the socket.
  ASSERT_TRUE(eventually([&] { return offset(id) > Terminal::kAhead; }));
  std::uint64_t before = 0;
  ASSERT_TRUE(eventually([&] { return std::exchange(before, offset(id)) == offset(id); }));
  EXPECT_LT(offset(id), 4000000u);
  EXPECT_EQ(ws.word(), connected(id, "pipe"));
  EXPECT_EQ(ws.word(), R"({"type":"exit","exit_code":4})");
  EXPECT_EQ(ws.output.size(), 5000000u);
  EXPECT_LE(ws.largest, 32u * 1024);
}

}  // namespace
}  // namespace osb::execd
