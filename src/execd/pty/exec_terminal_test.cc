// POST /osb/v1/exec with a terminal.
#include <algorithm>

#include "execd/daemon_fixture.h"

namespace osb::execd {
namespace {

constexpr std::string_view kUpgrade = "Connection: Upgrade\r\nUpgrade: osb-exec/1\r\n";

class ExecTerminal : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    start();
  }

  Wire begin(std::string_view argv, std::string_view more = ",\"tty\":{\"cols\":100,\"rows\":30}") const {
    Wire wire = connect();
    wire.request("POST", "/osb/v1/exec", cat("{\"argv\":", argv, more, "}"), kUpgrade);
    EXPECT_EQ(wire.head().status, 101);
    return wire;
  }
  static void type(Wire& wire, std::string_view keys) { wire.send(make_frame(FrameType::input, keys)); }

  // Output until it holds `mark`; what came is kept in seen_.
  bool sees(Wire& wire, std::string_view mark) {
    std::string storage;
    while (!seen_.contains(mark)) {
      Frame frame = wire.frame(storage);
      if (frame.type != FrameType::output) return last_ = frame.payload, false;
      seen_ += frame.payload;
    }
    seen_.erase(0, seen_.find(mark) + mark.size());
    return true;
  }
  // A key counts for whoever is in the foreground, which is sleep only once the shell has given the terminal away.
  bool is_in_front(std::string_view words) const {
    return eventually([&] {
      auto output = output_of(run("ps -eo stat=,args="));
      return std::ranges::any_of(output, [&](std::string_view line) {
        return line.starts_with("stdout:S") && line.substr(0, 16).contains('+') && line.ends_with(cat(" ", words));
      });
    });
  }
  boost::json::object end_of(Wire& wire) {
    EXPECT_FALSE(sees(wire, "\x01 never said"));
    return boost::json::parse(last_).as_object();
  }

  std::string seen_;
  std::string last_;
};

TEST_F(ExecTerminal, IsTheControllingTerminalOfTheProgramAndHasTheAskedSize) {
  auto wire = begin(
      R"(["sh","-c","tty; stty size; ps -o sid=,pgid=,tpgid= -p $$; echo $$; test -t 0 -a -t 1 -a -t 2 && echo all; echo TERM=$TERM > /dev/tty"])");
  EXPECT_TRUE(sees(wire, "/dev/pts/")) << seen_;
  EXPECT_TRUE(sees(wire, "30 100\r\n")) << seen_;
  EXPECT_TRUE(sees(wire, "all\r\n")) << seen_;
  EXPECT_TRUE(sees(wire, "TERM=xterm")) << seen_;
  EXPECT_EQ(end_of(wire).at("exit_code"), 0);
  EXPECT_TRUE(wire.at_end());
}

TEST_F(ExecTerminal, TurnsKeysIntoSignalsAndEndOfInput) {
  auto wire = begin(R"(["sh","-c","trap 'echo interrupted' INT; echo ready; read line; read line; echo got $line; cat; exit 7"])");
  ASSERT_TRUE(sees(wire, "ready\r\n"));
  type(wire, "\x03");
  ASSERT_TRUE(sees(wire, "interrupted\r\n")) << seen_;
  type(wire, "one\rtwo\r");
  ASSERT_TRUE(sees(wire, "got ")) << seen_;
  wire.send(make_frame(FrameType::input_end, {}));
  auto end = end_of(wire);
  EXPECT_EQ(end.at("exit_code"), 7);
}

TEST_F(ExecTerminal, TellsTheProgramOfANewSize) {
  auto wire = begin(R"(["bash","-c","trap 'stty size; exit 3' WINCH; echo ready; while :; do read -t 1 x; done"])");
  ASSERT_TRUE(sees(wire, "ready\r\n"));
  wire.send(make_frame(FrameType::resize, std::string_view("\x00\x00\x00\x00", 4)));  // no size: nothing happens
  wire.send(make_frame(FrameType::resize, std::string_view("\x00\x84\x00\x2b", 4)));
  ASSERT_TRUE(sees(wire, "43 132\r\n")) << seen_;
  EXPECT_EQ(end_of(wire).at("exit_code"), 3);
}

TEST_F(ExecTerminal, HasJobControl) {
  auto wire = begin(R"(["bash","--norc","--noprofile"])");
  type(wire, "PS1='$ '\rsleep 4711\r");
  ASSERT_TRUE(sees(wire, "sleep 4711\r\n")) << seen_;
  ASSERT_TRUE(is_in_front("sleep 4711"));
  type(wire, "\x1a");
  ASSERT_TRUE(sees(wire, "Stopped")) << seen_;
  type(wire, "fg\r");
  ASSERT_TRUE(sees(wire, "sleep 4711\r\n")) << seen_;
  ASSERT_TRUE(is_in_front("sleep 4711"));
  type(wire, "\x03");
  type(wire, "echo status $?\rexit 5\r");
  ASSERT_TRUE(sees(wire, "status 130")) << seen_;
  EXPECT_EQ(end_of(wire).at("exit_code"), 5);
}

TEST_F(ExecTerminal, SendsASignalToTheForegroundGroup) {
  auto wire = begin(R"(["bash","--norc","--noprofile","-i","-c","sleep 4712; echo status $?"])");
  char quit = SIGQUIT;
  ASSERT_TRUE(is_in_front("sleep 4712"));
  wire.send(make_frame(FrameType::signal, {&quit, 1}));
  EXPECT_TRUE(sees(wire, "status 131")) << seen_;
}

TEST_F(ExecTerminal, KeepsTheLastWordsOfAProgramThatEndsAtOnce) {
  for (int i = 0; i < 20; ++i) {
    auto wire = begin(
        R"(["sh","-c","i=0; while [ $i -lt 300 ]; do echo line-$i-xxxxxxxxxxxxxxxxxxxxxxxxxxxxx; i=$((i+1)); done; printf end-of-all"])");
    EXPECT_TRUE(sees(wire, "end-of-all")) << i;
    EXPECT_EQ(end_of(wire).at("exit_code"), 0);
  }
}

TEST_F(ExecTerminal, HangsUpOnWhatIsLeftAfterTheEnd) {
  auto wire = begin(cat(R"(["sh","-c","(trap '' HUP; sleep 0.1; echo $$ > )", file("left"), R"(; cat /dev/tty; echo gone > )", file("gone"),
                        R"() & sleep 0.05; exit 4"])"));
  EXPECT_EQ(end_of(wire).at("exit_code"), 4);
  EXPECT_TRUE(eventually([&] { return read_text(file("gone")) == "gone\n"; }));
}

TEST_F(ExecTerminal, EndsEverythingWhenTheClientGoes) {
  auto wire = begin(cat(R"(["sh","-c","trap '' HUP; echo $$ > )", file("pid"), R"(; sleep 100 & wait"])"));
  pid_t pid = pid_in(file("pid"));
  wire.close();
  EXPECT_TRUE(eventually([&] { return !alive(pid); }));
}

TEST_F(ExecTerminal, RefusesAWindowThatIsNone) {
  for (std::string_view bad : {"true", "{\"cols\":0}", "{\"cols\":-1}", "{\"rows\":65536}", "{\"cols\":\"80\"}"})
    EXPECT_EQ(ask("POST", "/osb/v1/exec", cat("{\"argv\":[\"true\"],\"tty\":", bad, "}"), kUpgrade).status, 400) << bad;
}

}  // namespace
}  // namespace osb::execd
