// Background commands, deadlines, interrupts, orphans, clients that are slow or gone.

#include "execd/daemon_fixture.h"

namespace osb::execd {
namespace {

using Texts = std::vector<std::string>;

// What a flood may cost; the sanitizer keeps freed memory for a while.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::size_t kGrowth = 64 * 1024 * 1024;
#else
constexpr std::size_t kGrowth = 4 * 1024 * 1024;
#endif

class LifetimeTest : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    start();
  }
  Reply logs(std::string_view id, std::string_view query = {}) const { return ask("GET", cat("/command/", id, "/logs", query)); }
  static std::string cursor_of(const Reply& reply) {
    auto at = reply.head.find("EXECD-COMMANDS-TAIL-CURSOR: ");
    return at == std::string::npos ? "" : reply.head.substr(at + 28, reply.head.find("\r\n", at) - at - 28);
  }
  bool ended(std::string_view id) const { return !status_of(id).at("running").as_bool(); }
  // A process of another session, two parents away, that ignores SIGTERM; its pid is in the file `name`.
  std::string runaway(std::string_view name) const {
    return cat("(setsid sh -c 'trap \"\" TERM HUP INT; (sh -c \"trap \\\"\\\" TERM; echo \\$\\$ > ", file(name),
               "; while :; do sleep 1; done\") & exit' &)");
  }
  // Its own pages; those of shared libraries come and go.
  std::size_t memory_of_daemon() const {
    std::string status = read_text(cat("/proc/", pid_, "/status"));
    return std::strtoul(status.c_str() + status.find("RssAnon:") + 8, nullptr, 10) * 1024;
  }
};

TEST_F(LifetimeTest, BackgroundAnswersAtOnceAndKeepsTheOutput) {
  auto gate = file("gate");
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  auto reply = command(cat("echo one; echo two >&2; cat ", gate, "; exit 3"), ",\"background\":true");
  auto events = events_of(reply.body);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(text_of(events[1], "type"), "execution_complete");
  std::string id = text_of(events[0], "text");

  auto running = status_of(id);
  EXPECT_TRUE(running.at("running").as_bool());
  EXPECT_FALSE(running.contains("exit_code"));
  EXPECT_FALSE(running.contains("finished_at"));
  EXPECT_TRUE(eventually([&] { return logs(id).body == "one\ntwo\n"; })) << logs(id).body;
  EXPECT_EQ(cursor_of(logs(id)), "8");
  EXPECT_EQ(logs(id, "?cursor=8").body, "");

  std::ofstream(gate) << "three\n";
  ASSERT_TRUE(eventually([&] { return ended(id); }));
  EXPECT_EQ(logs(id, "?cursor=8").body, "three\n") << "complete as soon as the status says so";
  auto done = status_of(id);
  EXPECT_EQ(done.at("exit_code").as_int64(), 3);
  EXPECT_EQ(text_of(done, "error"), "exit status 3");
  EXPECT_TRUE(text_of(done, "finished_at").ends_with("Z"));
  EXPECT_EQ(logs(id, "?cursor=abc").body, "one\ntwo\nthree\n");
}

TEST_F(LifetimeTest, LogsThatOutgrewTheirRingSaySo) {
  std::string id = start_in_background("seq 1 400000");
  ASSERT_TRUE(eventually([&] { return ended(id); }));
  auto reply = logs(id);
  EXPECT_TRUE(reply.body.starts_with("[truncated ")) << reply.body.substr(0, 100);
  EXPECT_TRUE(reply.body.ends_with("\n400000\n"));
  EXPECT_LE(reply.body.size(), Commands::kRingBytes + 64);
  EXPECT_EQ(cursor_of(reply), "2688895");
  EXPECT_EQ(logs(id, "?cursor=2688888").body, "400000\n");
}

TEST_F(LifetimeTest, UnknownIdsGetTheAnswersClientsExpect) {
  EXPECT_EQ(ask("GET", "/command/status/nope").status, 404);
  EXPECT_NE(ask("GET", "/command/status/nope").body.find("INVALID_REQUEST_BODY"), std::string::npos);
  EXPECT_EQ(logs("nope").status, 400);
  EXPECT_EQ(ask("DELETE", "/command").status, 400);
  EXPECT_NE(ask("DELETE", "/command").body.find("MISSING_QUERY"), std::string::npos);
  EXPECT_EQ(ask("DELETE", "/command?id=nope").status, 500);
  EXPECT_NE(ask("DELETE", "/command?id=nope").body.find("RUNTIME_ERROR"), std::string::npos);
  std::string id = text_of(run("true").front(), "text");
  EXPECT_EQ(logs(id).status, 400) << "logs are for background commands";
  EXPECT_FALSE(status_of(id).at("running").as_bool()) << "status is for all";
  EXPECT_EQ(ask("DELETE", cat("/command?id=", id)).status, 500) << "already finished";
}

TEST_F(LifetimeTest, TimeoutEndsTheWholeTreeHoweverFarItRan) {
  auto begun = std::chrono::steady_clock::now();
  auto events =
      run(cat(runaway("pid"), "; while [ ! -s ", file("pid"), " ]; do sleep 0.01; done; touch ", file("ready"), "; trap '' TERM; sleep 60"),
          ",\"timeout\":1500");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 8s);
  EXPECT_EQ(error_code_of(events), "-1");
  EXPECT_EQ(text_of(events.back(), "cause"), "timed_out");
  ASSERT_EQ(::access(file("ready").c_str(), F_OK), 0) << "the runaway was there before the timeout";
  pid_t pid = pid_in(file("pid"));
  ASSERT_GT(pid, 1);
  EXPECT_TRUE(eventually([&] { return !alive(pid); }));
}

TEST_F(LifetimeTest, ARunawayOutlivesACommandThatEndsByItself) {
  auto events = run(cat(runaway("pid"), "; while [ ! -s ", file("pid"), " ]; do sleep 0.01; done"), ",\"timeout\":20000");
  EXPECT_EQ(text_of(events.back(), "type"), "execution_complete");
  pid_t pid = pid_in(file("pid"));
  EXPECT_TRUE(alive(pid)) << "the control: only a deadline or an interrupt ends it";
}

TEST_F(LifetimeTest, TimeoutAlsoEndsBackgroundCommands) {
  std::string id = start_in_background("sleep 60", ",\"timeout\":100");
  ASSERT_TRUE(eventually([&] { return ended(id); }));
  EXPECT_EQ(status_of(id).at("exit_code").as_int64(), -1);
}

TEST_F(LifetimeTest, InterruptEndsTheTreeAndTheStream) {
  Wire wire = connect();
  wire.request("POST", "/command",
               cat("{\"command\":",
                   json_string(cat(runaway("pid"), "; while [ ! -s ", file("pid"), " ]; do sleep 0.01; done; echo ready; sleep 60")), "}"));
  wire.head();
  std::string body = wire.chunk();
  while (body.find("\"ready\"") == std::string::npos) body += wire.chunk();
  std::string id = text_of(events_of(body).front(), "text");
  EXPECT_TRUE(status_of(id).at("running").as_bool());
  auto reply = ask("DELETE", cat("/command?id=", id));
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.has("\r\nContent-Length: 0\r\n"));
  for (std::string bytes = wire.chunk(); !bytes.empty(); bytes = wire.chunk()) body += bytes;
  EXPECT_EQ(error_code_of(events_of(body)), "143");
  EXPECT_TRUE(eventually([&] { return !alive(pid_in(file("pid"))); }));
  EXPECT_EQ(ask("DELETE", cat("/command?id=", id)).status, 500);
}

TEST_F(LifetimeTest, InterruptOfADeafCommandKillsItAfterTheGrace) {
  std::string id = start_in_background(cat("trap '' TERM; touch ", file("deaf"), "; while :; do sleep 0.1; done"));
  ASSERT_TRUE(eventually([&] { return ::access(file("deaf").c_str(), F_OK) == 0; }));
  auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(ask("DELETE", cat("/command?id=", id)).status, 200);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 2900ms);
  EXPECT_EQ(status_of(id).at("exit_code").as_int64(), 137);
}

TEST_F(LifetimeTest, AnInterruptedCommandIsNeverASuccess) {
  std::string id = start_in_background(cat("trap 'exit 0' TERM; touch ", file("polite"), "; while :; do sleep 0.01; done"));
  ASSERT_TRUE(eventually([&] { return ::access(file("polite").c_str(), F_OK) == 0; }));
  EXPECT_EQ(ask("DELETE", cat("/command?id=", id)).status, 200);
  auto status = status_of(id);
  EXPECT_EQ(status.at("exit_code").as_int64(), 0);
  EXPECT_TRUE(status.contains("error"));
}

TEST_F(LifetimeTest, AThousandOrphansAreReapedWhileTheirStarterNeverWaits) {
  // The leader becomes `sleep`, which waits for nobody; each `( ... &)` is an orphan at once.
  std::string id = start_in_background("i=0; while [ $i -lt 1000 ]; do (true &); i=$((i+1)); done; exec sleep 60");
  std::string children = cat("/proc/", pid_, "/task/", pid_, "/children");
  EXPECT_TRUE(eventually([&] {
    std::istringstream pids(read_text(children));
    pid_t pid = 0;
    return (pids >> pid) && read_text(cat("/proc/", pid, "/comm")) == "sleep\n" && !(pids >> pid);
  })) << "left: "
      << read_text(children);
  EXPECT_FALSE(ended(id));
}

TEST_F(LifetimeTest, ASlowReaderStopsTheWriterAndCostsNoMemory) {
  std::size_t before = memory_of_daemon();
  Wire wire = connect();
  wire.request("POST", "/command", cat("{\"command\":\"echo $$ > ", file("pid"), "; exec yes\"}"));
  pid_t writer = pid_in(file("pid"));
  auto written = [&] {
    std::string io = read_text(cat("/proc/", writer, "/io"));
    return std::atoll(io.c_str() + io.find("wchar: ") + 7);
  };
  // Blocked: nothing more is written between two looks.
  EXPECT_TRUE(eventually([&] {
    auto first = written();
    ::usleep(50'000);
    return first > 65536 && first == written();
  }));
  EXPECT_LT(memory_of_daemon(), before + kGrowth);
  auto blocked_at = written();
  EXPECT_EQ(wire.take(1 << 20).size(), 1u << 20);
  EXPECT_TRUE(eventually([&] { return written() > blocked_at; })) << "it goes on when the client reads";
  EXPECT_LT(memory_of_daemon(), before + kGrowth);
  EXPECT_EQ(ask("GET", "/ping").status, 200) << "others are served meanwhile";
}

TEST_F(LifetimeTest, AnOutputFloodWithoutAReaderCostsNoMemory) {
  std::size_t before = memory_of_daemon();
  std::string id = start_in_background("head -c 200000000 /dev/zero");
  ASSERT_TRUE(eventually([&] { return ended(id); }));
  EXPECT_LT(memory_of_daemon(), before + kGrowth);
  EXPECT_EQ(cursor_of(logs(id, "?cursor=199999999")), "200000000");
}

TEST_F(LifetimeTest, FloodsDoNotKeepOthersWaiting) {
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(start_in_background("yes").empty());
  auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask("GET", "/ping").status, 200);
  EXPECT_EQ(output_of(run("echo through")), (Texts{"stdout:through"}));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s);
}

TEST_F(LifetimeTest, AllLogsTogetherAreBounded) {
  std::size_t before = memory_of_daemon();
  std::vector<std::string> ids;
  for (int i = 0; i < 12; ++i) {
    ids.push_back(start_in_background("head -c 1500000 /dev/zero | tr '\\0' x; echo"));
    ASSERT_TRUE(eventually([&] { return ended(ids.back()); }));
  }
  EXPECT_LT(memory_of_daemon(), before + OutputBudget::kAllBytes + kGrowth);
  EXPECT_EQ(logs(ids.front()).body, "[truncated 1500001 bytes]\n") << "the oldest gave way";
  EXPECT_EQ(cursor_of(logs(ids.front())), "1500001");
  EXPECT_GT(logs(ids.back()).body.size(), 500'000u) << "the newest is whole";
}

TEST_F(LifetimeTest, OnlyTheLastCommandsAreRemembered) {
  std::string first = text_of(run("true").front(), "text");
  for (std::size_t i = 0; i < Commands::kMaxEnded - 1; ++i) run("true");
  EXPECT_EQ(ask("GET", cat("/command/status/", first)).status, 200);
  for (int i = 0; i < 2; ++i) run("true");
  EXPECT_EQ(ask("GET", cat("/command/status/", first)).status, 404);
}

TEST_F(LifetimeTest, ACommandGoesOnWithoutItsClient) {
  Wire wire = connect();
  wire.request("POST", "/command", cat("{\"command\":\"touch ", file("begun"), "; seq 1 500000; touch ", file("done"), "\"}"));
  ASSERT_TRUE(eventually([&] { return ::access(file("begun").c_str(), F_OK) == 0; }));
  EXPECT_NE(::access(file("done").c_str(), F_OK), 0) << "its output does not fit before the client goes";
  wire.close();
  EXPECT_TRUE(eventually([&] { return ::access(file("done").c_str(), F_OK) == 0; }));
}

TEST_F(LifetimeTest, ThereIsALimitOfRunningCommands) {
  for (std::size_t i = 0; i < Commands::kMaxRunning; ++i) ASSERT_FALSE(start_in_background("sleep 60").empty());
  auto reply = command("true");
  EXPECT_EQ(reply.status, 429);
  EXPECT_FALSE(reply.body.empty());
  std::string children = read_text(cat("/proc/", pid_, "/task/", pid_, "/children"));
  ::kill(std::atoi(children.c_str()), SIGKILL);
  EXPECT_TRUE(eventually([&] { return command("true").status == 200; })) << "one ended, one may start";
}

}  // namespace
}  // namespace osb::execd
