// POST /osb/v1/exec through a running execd: input, output, signals and the end on one connection.
#include <thread>

#include "execd/daemon_fixture.h"

namespace osb::execd {
namespace {

class ExecTest : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    start();
  }

  static constexpr std::string_view kUpgrade = "Connection: Upgrade\r\nUpgrade: osb-exec/1\r\n";

  Wire open(std::string_view body) const {
    Wire wire = connect();
    wire.request("POST", "/osb/v1/exec", body, kUpgrade);
    auto head = wire.head();
    EXPECT_EQ(head.status, 101) << head.head;
    EXPECT_TRUE(head.has("\r\nUpgrade: osb-exec/1\r\n"));
    return wire;
  }

  struct Conversation {
    std::string out;
    std::string err;
    Event end;
  };
  static Conversation finish(Wire& wire) {
    Conversation talk;
    std::string storage;
    for (;;) {
      Frame frame = wire.frame(storage);
      if (frame.type == FrameType::output) talk.out += frame.payload;
      if (frame.type == FrameType::error_output) talk.err += frame.payload;
      if (frame.type == FrameType::end) talk.end = boost::json::parse(frame.payload).as_object();
      if (frame.type != FrameType::output && frame.type != FrameType::error_output) break;
    }
    EXPECT_TRUE(wire.at_end()) << "the connection closes after the end";
    return talk;
  }
  Conversation run(std::string_view body) const {
    Wire wire = open(body);
    return finish(wire);
  }
};

TEST_F(ExecTest, RunsAProgramWithItsArgumentsUntouched) {
  auto talk = run(R"({"argv":["printf","%s|","a b","$HOME","*","","ünï"]})");
  EXPECT_EQ(talk.out, "a b|$HOME|*||ünï|");
  EXPECT_EQ(talk.end.at("exit_code").as_int64(), 0);
  EXPECT_EQ(text_of(talk.end, "cause"), "exited");
  EXPECT_FALSE(talk.end.contains("signal"));
}

TEST_F(ExecTest, KeepsTheTwoOutputsApartAndTheExitCode) {
  auto talk = run(R"({"argv":["sh","-c","echo out; echo err >&2; exit 7"]})");
  EXPECT_EQ(talk.out, "out\n");
  EXPECT_EQ(talk.err, "err\n");
  EXPECT_EQ(talk.end.at("exit_code").as_int64(), 7);
}

TEST_F(ExecTest, CarriesInputToTheProgram) {
  Wire wire = open(R"({"argv":["cat"],"stdin":true})");
  std::string storage;
  wire.send(make_frame(FrameType::input, "hello\n"));
  EXPECT_EQ(wire.frame(storage).payload, "hello\n") << "before the end of the input";
  wire.send(make_frame(FrameType::input, std::string("\0\xff", 2)));
  wire.send(make_frame(FrameType::input_end, ""));
  auto talk = finish(wire);
  EXPECT_EQ(talk.out, std::string("\0\xff", 2));
  EXPECT_EQ(talk.end.at("exit_code").as_int64(), 0);
}

TEST_F(ExecTest, CarriesMegabytesBothWaysAtOnce) {
  Wire wire = open(R"({"argv":["cat"],"stdin":true})");
  std::string block(65536, 'x');
  std::thread writer([&] {
    for (int i = 0; i < 64; ++i) wire.send(make_frame(FrameType::input, block));
    wire.send(make_frame(FrameType::input_end, ""));
  });
  auto talk = finish(wire);
  writer.join();
  EXPECT_EQ(talk.out.size(), 64 * block.size());
  EXPECT_EQ(talk.end.at("exit_code").as_int64(), 0);
}

TEST_F(ExecTest, WithoutInputTheProgramSeesItsEnd) { EXPECT_EQ(run(R"({"argv":["cat"]})").end.at("exit_code").as_int64(), 0); }

TEST_F(ExecTest, PassesSignalsOn) {
  Wire wire = open(R"({"argv":["sh","-c","trap 'echo got it; exit 5' INT; echo ready; while :; do sleep 0.01; done"]})");
  std::string storage;
  EXPECT_EQ(wire.frame(storage).payload, "ready\n");
  wire.send(make_frame(FrameType::signal, std::string(1, SIGINT)));
  auto talk = finish(wire);
  EXPECT_EQ(talk.out, "got it\n");
  EXPECT_EQ(talk.end.at("exit_code").as_int64(), 5);
}

TEST_F(ExecTest, DeathBySignalNamesIt) {
  auto talk = run(R"({"argv":["sh","-c","kill -TERM $$"]})");
  EXPECT_EQ(talk.end.at("exit_code").as_int64(), 143);
  EXPECT_EQ(talk.end.at("signal").as_int64(), 15);
  EXPECT_EQ(text_of(talk.end, "cause"), "signalled");
}

TEST_F(ExecTest, AMissingProgramIs127AndOneThatCannotRunIs126) {
  auto absent = run(R"({"argv":["nonexistent-command-4711"]})");
  EXPECT_EQ(absent.end.at("exit_code").as_int64(), 127);
  EXPECT_EQ(text_of(absent.end, "cause"), "not_found");
  EXPECT_FALSE(absent.err.empty());
  EXPECT_EQ(run(R"({"argv":["/etc/passwd"]})").end.at("exit_code").as_int64(), 126);
}

TEST_F(ExecTest, TimesOutLikeTimeout) {
  auto talk = run(R"({"argv":["sleep","60"],"timeout_ms":100})");
  EXPECT_EQ(talk.end.at("exit_code").as_int64(), 124);
  EXPECT_EQ(text_of(talk.end, "cause"), "timed_out");
  EXPECT_TRUE(talk.end.contains("advice"));
}

TEST_F(ExecTest, UsesDirectoryAndEnvironmentOfTheRequest) {
  EXPECT_EQ(run(R"({"argv":["pwd"],"cwd":"/usr"})").out, "/usr\n");
  EXPECT_EQ(run(R"({"argv":["sh","-c","echo $A"],"env":{"A":"b"}})").out, "b\n");
}

TEST_F(ExecTest, HangingUpEndsTheWholeTree) {
  Wire wire = open(cat(R"({"argv":["sh","-c","(setsid sh -c 'trap \"\" TERM HUP; echo $$ > )", file("pid"),
                       R"(; while :; do sleep 1; done' &); sleep 60"],"stdin":true})"));
  pid_t pid = pid_in(file("pid"));
  ASSERT_TRUE(alive(pid));
  wire.close();
  EXPECT_TRUE(eventually([&] { return !alive(pid); }));
}

TEST_F(ExecTest, HangingUpIsNoticedWhileInputIsStuck) {
  Wire wire = open(cat(R"({"argv":["sh","-c","echo $$ > )", file("pid"), R"(; exec sleep 60"],"stdin":true})"));
  pid_t pid = pid_in(file("pid"));
  for (int i = 0; i < 2; ++i) wire.send(make_frame(FrameType::input, std::string(65536, 'x')));
  wire.close();
  EXPECT_TRUE(eventually([&] { return !alive(pid); }));
}

TEST_F(ExecTest, NonsenseOnTheWireEndsTheProgram) {
  Wire wire = open(cat(R"({"argv":["sh","-c","echo $$ > )", file("pid"), R"(; exec sleep 60"],"stdin":true})"));
  pid_t pid = pid_in(file("pid"));
  wire.send("\x63garbage");
  EXPECT_TRUE(eventually([&] { return !alive(pid); }));
}

TEST_F(ExecTest, ASlowReaderStopsTheWriter) {
  Wire wire = open(cat(R"({"argv":["sh","-c","echo $$ > )", file("pid"), R"(; exec yes"]})"));
  pid_t writer = pid_in(file("pid"));
  auto written = [&] {
    std::string io = read_text(cat("/proc/", writer, "/io"));
    return std::atoll(io.c_str() + io.find("wchar: ") + 7);
  };
  EXPECT_TRUE(eventually([&] {
    auto first = written();
    ::usleep(50'000);
    return first > 65536 && first == written();
  }));
}

TEST_F(ExecTest, AProgramLeftBehindDoesNotHoldTheEnd) {
  auto talk = run(cat(R"({"argv":["sh","-c","(sleep 0.2; echo late; touch )", file("late"), R"() & echo now"]})"));
  EXPECT_EQ(talk.out, "now\n");
  EXPECT_TRUE(eventually([&] { return ::access(file("late").c_str(), F_OK) == 0; }));
}

TEST_F(ExecTest, MistakesAreAnsweredBeforeTheUpgrade) {
  auto refused = [&](std::string_view body) { return ask("POST", "/osb/v1/exec", body, kUpgrade); };
  EXPECT_EQ(refused(R"({"argv":[]})").status, 400);
  EXPECT_EQ(refused(R"({"argv":["ls"],"cwd":"/nonexistent"})").status, 400);
  EXPECT_EQ(refused("{").status, 400);
  EXPECT_EQ(ask("POST", "/osb/v1/exec", R"({"argv":["true"]})").status, 426) << "without the upgrade";
}

}  // namespace
}  // namespace osb::execd
