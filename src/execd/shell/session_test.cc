// Bash sessions through a running execd, as clients see them.
#include "execd/daemon_fixture.h"
#include "execd/shell/script.h"
#include "execd/shell/sessions.h"

namespace osb::execd {
namespace {

using Texts = std::vector<std::string>;

TEST(ShellScript, QuotesAnythingAsOneWord) {
  EXPECT_EQ(shell::quote("plain"), "'plain'");
  EXPECT_EQ(shell::quote("it's"), "'it'\\''s'");
  EXPECT_EQ(shell::quote(""), "''");
}

TEST(ShellScript, FindsTheReportOfItsOwnRunOnly) {
  using namespace std::string_literals;
  EXPECT_FALSE(shell::find_report("Saa\0000\0/x"s, "aa")) << "not yet whole";
  auto found = shell::find_report("Sold\0001\0/o\0d\0Eold\0Saa\000130\0Saa\0007\0/x\0"s, "aa");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->status, 7) << "the one that was cut off by an interrupt does not count";
  EXPECT_EQ(found->cwd, "/x");
  EXPECT_EQ(shell::find_report("Saa\000-1\0/\0"s, "aa")->status, 255);
  EXPECT_EQ(shell::find_report("Saa\000abc\0/\0"s, "aa")->status, 2);
  EXPECT_FALSE(shell::find_report("Sbb\0000\0/x\0"s, "aa"));
}

TEST(ShellScript, TakesTheExportsBehindTheReport) {
  using namespace std::string_literals;
  std::string written = "Saa\0000\0/x\0declare"s;
  EXPECT_FALSE(shell::take_exports(written, "aa"));
  written += " -x A\n\0Eaa\0Sbb\0"s;
  EXPECT_EQ(shell::take_exports(written, "aa"), "declare -x A\n");
  EXPECT_EQ(written, "Sbb\0"s);
}

class SessionTest : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    start();
    session_ = open();
  }
  std::string open(std::string_view body = {}) const {
    auto reply = ask("POST", "/session", body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.status == 200 ? text_of(boost::json::parse(reply.body).as_object(), "session_id") : "";
  }
  Reply post(std::string_view text, std::string_view more = {}, std::string_view headers = {}) const {
    return ask("POST", cat("/session/", session_, "/run"), cat("{\"command\":", json_string(text), more, "}"), headers);
  }
  std::vector<Event> run(std::string_view text, std::string_view more = {}) const { return events_of(post(text, more).body); }
  Texts say(std::string_view text, std::string_view more = {}) const { return output_of(run(text, more)); }
  // A run under way on a connection of its own; `text` creates the file "begun".
  Wire begin(std::string_view text, std::string_view more = {}) const {
    Wire wire = connect();
    wire.request("POST", cat("/session/", session_, "/run"),
                 cat("{\"command\":", json_string(cat("touch ", file("begun"), "; ", text)), more, "}"));
    EXPECT_TRUE(eventually([&] { return ::access(file("begun").c_str(), F_OK) == 0; }));
    ::unlink(file("begun").c_str());
    return wire;
  }
  std::string session_;
};

TEST_F(SessionTest, StreamsLikeACommandUnderTheSessionsId) {
  auto events = run("echo out; echo err >&2");
  EXPECT_EQ(text_of(events[0], "type"), "init");
  EXPECT_EQ(text_of(events[0], "text"), session_);
  EXPECT_EQ(text_of(events[0], "run_id").size(), 32u);
  EXPECT_EQ(session_.size(), 36u);
  auto output = output_of(events);
  std::sort(output.begin(), output.end());
  EXPECT_EQ(output, (Texts{"stderr:err", "stdout:out"}));
  EXPECT_EQ(text_of(events.back(), "type"), "execution_complete");
  std::int64_t last = 0;
  for (const Event& event : events)
    if (auto* seq = event.if_contains("seq")) EXPECT_EQ(seq->as_int64(), ++last);
  auto again = events_of(ask("GET", cat("/osb/v1/runs/", text_of(events[0], "run_id"), "/events")).body);
  EXPECT_EQ(output_of(again).size(), 2u) << "a session's run can be read again";
}

TEST_F(SessionTest, EverythingAShellIsStaysBetweenRuns) {
  run("f() { echo fun $1; }; alias hello='echo alias'; x=unexported; export E='two\nlines'; umask 027; set -o pipefail; cd /var; sleep 60 "
      "&");
  EXPECT_EQ(
      say("f 1; hello; echo $x; echo \"$E\"; umask; pwd; jobs -r | wc -l; false | true"),
      (Texts{"stdout:fun 1", "stdout:alias", "stdout:unexported", "stdout:two", "stdout:lines", "stdout:0027", "stdout:/var", "stdout:1"}));
  EXPECT_EQ(error_code_of(run("false | true")), "1") << "pipefail is still on";
}

TEST_F(SessionTest, DirectoriesAreMadeEnteredAndKept) {
  session_ = open(cat("{\"cwd\":\"", file("new/dir"), "\"}"));
  EXPECT_EQ(say("pwd"), (Texts{cat("stdout:", file("new/dir"))}));
  EXPECT_EQ(say("pwd", ",\"cwd\":\"/var\""), (Texts{"stdout:/var"}));
  EXPECT_EQ(say("pwd"), (Texts{"stdout:/var"})) << "it sticks";
  EXPECT_EQ(post("pwd", ",\"cwd\":\"/nope\"").status, 400);
  EXPECT_EQ(ask("POST", "/session", "{\"cwd\":\"/proc/nope/x\"}").status, 400);
  EXPECT_EQ(say("pwd"), (Texts{"stdout:/var"}));
}

TEST_F(SessionTest, StatusOfTheLastCommandDecides) {
  auto events = run("sh -c 'echo session-fail >&2; exit 7'");
  EXPECT_EQ(error_code_of(events), "7");
  EXPECT_EQ(output_of(events), (Texts{"stderr:session-fail"}));
  for (const Event& event : events) EXPECT_NE(text_of(event, "type"), "execution_complete");
  auto missing = run("nonexistent-command");
  EXPECT_EQ(error_code_of(missing), "127");
  EXPECT_EQ(text_of(missing.back(), "cause"), "not_found");
}

TEST_F(SessionTest, ExitEndsTheRunAndKeepsTheShell) {
  run("x=kept");
  EXPECT_EQ(error_code_of(run("exit 3; echo no")), "3");
  EXPECT_EQ(error_code_of(run("false; exit")), "1");
  EXPECT_EQ(text_of(run("exit 0; echo no").back(), "type"), "execution_complete");
  EXPECT_EQ(error_code_of(run("(exit 5)")), "5");
  EXPECT_EQ(say("echo $x"), (Texts{"stdout:kept"}));
}

TEST_F(SessionTest, ATrapOnExitRunsWhenTheShellExits) {
  run("export E=exported; y=lost; cd /var");
  auto events = run("trap 'echo bye' EXIT; exit 4");
  EXPECT_EQ(error_code_of(events), "4");
  auto output = output_of(events);
  EXPECT_EQ(std::count(output.begin(), output.end(), "stdout:bye"), 1);
  EXPECT_EQ(say("echo $E-$y; pwd"), (Texts{"stdout:exported-", "stdout:/var"})) << "a new shell, with what was exported";
}

TEST_F(SessionTest, AShellThatEndsInAnotherWayIsReplaced) {
  run("export E='it'\\''s \"two\"\nlines'; cd /var");
  EXPECT_EQ(error_code_of(run("kill -9 $$")), "137");
  EXPECT_EQ(say("echo \"$E\"; pwd"), (Texts{"stdout:it's \"two\"", "stdout:lines", "stdout:/var"}));
  EXPECT_EQ(error_code_of(run("exec sh -c 'exit 9'")), "9");
  auto events = run("set -e; false; echo no");
  EXPECT_EQ(error_code_of(events), "1");
  EXPECT_TRUE(output_of(events).empty());
  EXPECT_EQ(say("false; echo \"$E\" | head -n 1"), (Texts{"stdout:it's \"two\""})) << "without its -e";
}

TEST_F(SessionTest, SyntaxErrorsAreToldAndHurtNobody) {
  run("x=kept");
  for (std::string_view text : {"echo \"unbalanced", "if true; then", "echo )", "cat <<'E'\nno end"}) {
    auto events = run(text);
    bool tolerated = text.starts_with("cat");  // bash ends the here-document and says so
    EXPECT_EQ(error_code_of(events), tolerated ? "" : "2") << text;
    EXPECT_FALSE(output_of(events).empty()) << text;
    EXPECT_EQ(say("echo $x"), (Texts{"stdout:kept"})) << text;
  }
}

TEST_F(SessionTest, InputIsEmptyAndDescriptorsOfARunEndWithIt) {
  EXPECT_EQ(say("cat; read y; echo \"[$y]\""), (Texts{"stdout:[]"}));
  EXPECT_TRUE(say(cat("exec >", file("log"), " 2>&1; echo to the file")).empty());
  EXPECT_EQ(read_text(file("log")), "to the file\n");
  EXPECT_EQ(say("echo back"), (Texts{"stdout:back"}));
  EXPECT_EQ(say("exec 0<&- 1>&- 2>&-; echo nobody hears"), Texts{});
  EXPECT_EQ(say("echo back"), (Texts{"stdout:back"}));
  EXPECT_EQ(say("cat <<E\nhere $((1+1))\nE"), (Texts{"stdout:here 2"}));
}

TEST_F(SessionTest, BinaryAndLongOutputArrive) {
  EXPECT_EQ(say(R"(printf 'a\0b\377\n')"), (Texts{"stdout:a" + std::string(1, '\0') + "b\xef\xbf\xbd"}));
  std::size_t bytes = 0;
  for (const std::string& piece : say("head -c 1048576 /dev/zero | tr '\\0' x; echo")) bytes += piece.size() - 7;
  EXPECT_EQ(bytes, 1048576u);
  std::string big(100'000, '\'');
  EXPECT_EQ(say(cat("x=", json_string(big), "; echo ${#x}")), (Texts{"stdout:100000"})) << "a long command arrives whole";
}

TEST_F(SessionTest, ProgramsInheritNoWayToForgeAReport) {
  EXPECT_EQ(say("ls /proc/self/fd | wc -l"), (Texts{"stdout:4"})) << "0, 1, 2 and the one ls reads with";
  // The control: the shell holds the socket, and its descriptors can be seen; but a socket cannot be opened by path.
  EXPECT_EQ(say("ls -l /proc/$$/fd | grep -c socket").front().empty(), false);
  auto events =
      run("sh -c 'for f in /proc/'$$'/fd/*; do [ -S $f ] && echo socket && (echo forged > $f) 2>/dev/null && echo opened; done; exit 6'");
  auto output = output_of(events);
  EXPECT_NE(std::count(output.begin(), output.end(), "stdout:socket"), 0);
  EXPECT_EQ(std::count(output.begin(), output.end(), "stdout:opened"), 0);
  EXPECT_EQ(error_code_of(events), "6");
  auto printed = run(R"(printf 'S%s\0000\0/\0' aa; echo; echo '{"type":"execution_complete"}'; false)");
  EXPECT_EQ(output_of(printed).size(), 2u) << "output is only output";
  EXPECT_EQ(error_code_of(printed), "1");
}

TEST_F(SessionTest, JobsInTheBackgroundGoOnAndTheirLateOutputIsDropped) {
  auto begun = std::chrono::steady_clock::now();
  run(cat("(while [ ! -e ", file("go"), " ]; do sleep 0.01; done; seq 1 20000; touch ", file("done"), ") & sleep 100 & echo now"));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s);
  auto next = run(cat("touch ", file("go"), "; while [ ! -e ", file("done"), " ]; do sleep 0.01; done; echo only me"));
  EXPECT_EQ(output_of(next), (Texts{"stdout:only me"}));
}

TEST_F(SessionTest, ATimeoutInterruptsAndTheShellSurvives) {
  run("f() { echo still here; }; x=kept; sleep 300 & echo $! > " + file("job"));
  pid_t job = pid_in(file("job"));
  auto events = run("sleep 60; echo no", ",\"timeout\":100");
  EXPECT_EQ(error_code_of(events), "-1");
  EXPECT_EQ(text_of(events.back(), "cause"), "timed_out");
  EXPECT_TRUE(output_of(events).empty()) << "what follows is not run";
  EXPECT_EQ(text_of(run("while :; do :; done", ",\"timeout\":100").back(), "cause"), "timed_out");
  EXPECT_EQ(say("f; echo $x"), (Texts{"stdout:still here", "stdout:kept"}));
  EXPECT_TRUE(alive(job)) << "a job in the background is not part of the run";
}

TEST_F(SessionTest, ACommandDeafToInterruptsTakesTheShellWithIt) {
  run("export E=exported; x=lost");
  auto events = run(cat("sh -c 'trap \"\" INT TERM; echo $$ > ", file("deaf"), "; while :; do sleep 1; done'"), ",\"timeout\":1000");
  EXPECT_EQ(text_of(events.back(), "cause"), "timed_out");
  pid_t deaf = pid_in(file("deaf"));
  EXPECT_TRUE(eventually([&] { return !alive(deaf); }));
  EXPECT_EQ(say("echo $E-$x"), (Texts{"stdout:exported-"}));
}

TEST_F(SessionTest, InterruptByRunEndsTheRunAndBySessionTheSession) {
  Wire wire = begin("sleep 60");
  wire.head();
  std::string body = wire.chunk();
  std::string id = text_of(events_of(body)[0], "run_id");
  EXPECT_EQ(ask("DELETE", cat("/command?id=", id)).status, 200);
  for (std::string bytes = wire.chunk(); !bytes.empty(); bytes = wire.chunk()) body += bytes;
  EXPECT_EQ(error_code_of(events_of(body)), "130");
  EXPECT_EQ(ask("DELETE", cat("/command?id=", id)).status, 500) << "it has ended";
  EXPECT_EQ(say("echo alive"), (Texts{"stdout:alive"}));
  Wire last = begin(cat("sleep 300 & echo $! > ", file("job"), "; wait"));
  pid_t job = pid_in(file("job"));
  ASSERT_TRUE(alive(job));
  EXPECT_EQ(ask("DELETE", cat("/command?id=", session_)).status, 200);
  EXPECT_EQ(text_of(events_of(last.reply().body).back(), "type"), "error");
  EXPECT_EQ(post("true").status, 404);
  EXPECT_TRUE(eventually([&] { return !alive(job); })) << "its jobs went with it";
}

TEST_F(SessionTest, AClientThatGoesEndsItsRunUnlessItGaveAKey) {
  run("x=kept");
  // More than once: the interrupt falls between the start of a program and its first instruction now and then.
  for (int i = 0; i < 8; ++i) {
    begin(cat("echo $$ > ", file("shell"), "; sleep 60; touch ", file("not"))).close();
    EXPECT_EQ(say("echo $x"), (Texts{"stdout:kept"})) << "answered when the abandoned run has been stopped";
  }
  EXPECT_NE(::access(file("not").c_str(), F_OK), 0);
  {
    Wire wire = connect();
    wire.request("POST", cat("/session/", session_, "/run"),
                 cat("{\"command\":\"touch ", file("begun"), "; while [ ! -e ", file("go"), " ]; do sleep 0.01; done; echo done\"}"),
                 "Idempotency-Key: again\r\n");
    ASSERT_TRUE(eventually([&] { return ::access(file("begun").c_str(), F_OK) == 0; }));
  }
  std::ofstream(file("go")) << "go";
  auto reply = ask("POST", cat("/session/", session_, "/run"),
                   cat("{\"command\":\"touch ", file("begun"), "; while [ ! -e ", file("go"), " ]; do sleep 0.01; done; echo done\"}"),
                   "Idempotency-Key: again\r\n");
  EXPECT_EQ(output_of(events_of(reply.body)), (Texts{"stdout:done"})) << "the same run, not a second one";
}

TEST_F(SessionTest, RunsQueueInOrderAndTheQueueIsBounded) {
  std::vector<Wire> wires;
  wires.push_back(begin(cat("while [ ! -e ", file("go"), " ]; do sleep 0.01; done; echo 0 >> ", file("order"))));
  for (std::size_t i = 1; i < shell::Session::kMaxQueue; ++i) {
    wires.push_back(connect());
    wires.back().request("POST", cat("/session/", session_, "/run"), cat("{\"command\":\"echo ", i, " >> ", file("order"), "\"}"));
    EXPECT_EQ(wires.back().head().status, 200);
    EXPECT_NE(wires.back().chunk().find("\"init\""), std::string::npos) << "a waiting run is told that it is there";
  }
  EXPECT_EQ(post("true").status, 409);
  std::ofstream(file("go")) << "go";
  wires.front().reply();
  for (std::size_t i = 1; i < wires.size(); ++i)
    while (!wires[i].chunk().empty()) {
    }
  std::string expected;
  for (std::size_t i = 0; i < shell::Session::kMaxQueue; ++i) expected += cat(i, "\n");
  EXPECT_EQ(read_text(file("order")), expected);
}

TEST_F(SessionTest, ThereIsALimitOfSessionsAndDeletingMakesRoom) {
  std::vector<std::string> ids{session_};
  while (ids.size() < shell::Sessions::kMax) ids.push_back(open());
  EXPECT_EQ(ask("POST", "/session").status, 429);
  EXPECT_EQ(ask("DELETE", cat("/session/", ids.back())).status, 200);
  EXPECT_EQ(ask("DELETE", cat("/session/", ids.back())).status, 404);
  EXPECT_FALSE(open("").empty());
}

TEST_F(SessionTest, BadRequestsAreRefused) {
  EXPECT_EQ(post("").status, 400);
  EXPECT_EQ(ask("POST", cat("/session/", session_, "/run"), "{}").status, 400);
  EXPECT_EQ(ask("POST", cat("/session/", session_, "/run"), "{\"command\":\"a\\u0000b\"}").status, 400);
  EXPECT_EQ(post("true", ",\"timeout\":-1").status, 400);
  EXPECT_EQ(text_of(run("true", ",\"timeout\":0").back(), "type"), "execution_complete");
  auto reply = ask("POST", "/session/nope/run", "{\"command\":\"true\"}");
  EXPECT_EQ(reply.status, 404);
  EXPECT_NE(reply.body.find("CONTEXT_NOT_FOUND"), std::string::npos);
  EXPECT_EQ(ask("POST", "/session", "[]").status, 400);
}

class ShSessionTest : public SessionTest {
 protected:
  // A PATH without bash.
  void SetUp() override {
    DaemonTest::SetUp();
    for (const char* name : {"sh", "sleep", "touch", "cat", "mkdir", "ls"})
      ASSERT_EQ(::symlink(cat("/bin/", name).c_str(), file(name).c_str()), 0);
    Start without = start_elsewhere({}, "");
    without.setup.env.insert_or_assign("PATH", dir_);
    start(std::move(without));
    session_ = open();
  }
};

TEST_F(ShSessionTest, WorksWithoutBash) {
  EXPECT_EQ(say("echo ${BASH_VERSION-none}; x=kept; f() { echo fun; }; export E=1; cd /var"), (Texts{"stdout:none"}));
  EXPECT_EQ(say("echo $x; f; pwd"), (Texts{"stdout:kept", "stdout:fun", "stdout:/var"}));
  EXPECT_EQ(error_code_of(run("exit 3")), "3");
  EXPECT_EQ(say("echo $E-$x; pwd"), (Texts{"stdout:1-", "stdout:/var"})) << "a plain sh exits and is replaced";
  EXPECT_EQ(error_code_of(run("echo \"unbalanced")), "2");
  EXPECT_EQ(text_of(run("sleep 60", ",\"timeout\":100").back(), "cause"), "timed_out");
  EXPECT_EQ(say("echo $E"), (Texts{"stdout:1"}));
}

}  // namespace
}  // namespace osb::execd
