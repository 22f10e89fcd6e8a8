// How execd starts and ends, who it lets in, what it forwards, and what a native sandbox's programs are left with.
#include <arpa/inet.h>
#include <elf.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstring>
#include <thread>

#include "execd/daemon_fixture.h"

namespace osb::execd {
namespace {

using Texts = std::vector<std::string>;

TEST_F(DaemonTest, TheTokenIsAskedForOnEveryPath) {
  start(start_elsewhere({}, "s3cret"));
  for (const char* path : {"/ping", "/proxy/44772/ping", "/proxy/1/", "/nope"}) {
    auto refused = ask("GET", path);
    EXPECT_EQ(refused.status, 401) << path;
    EXPECT_EQ(refused.body, R"({"error":"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN"})");
    EXPECT_EQ(ask("GET", path, {}, "X-EXECD-ACCESS-TOKEN: s3cre\r\n").status, 401);
  }
  EXPECT_EQ(ask("GET", "/ping", {}, "X-EXECD-ACCESS-TOKEN: s3cret\r\n").status, 200);
}

TEST_F(DaemonTest, ExitsWithTheStatusOfItsEntrypoint) {
  start(start_elsewhere({"sh", "-c", "exit 42"}, ""));
  int status = 0;
  ASSERT_EQ(::waitpid(pid_, &status, 0), pid_);
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST_F(DaemonTest, ExitsWith128PlusTheSignalOfItsEntrypoint) {
  start(start_elsewhere({"sh", "-c", "kill -KILL $$"}, ""));
  int status = 0;
  ASSERT_EQ(::waitpid(pid_, &status, 0), pid_);
  EXPECT_EQ(WEXITSTATUS(status), 137);
}

TEST_F(DaemonTest, PassesSigtermToItsEntrypointAndEndsWell) {
  start(start_elsewhere(
      {"sh", "-c", cat("trap 'touch ", file("heard"), "; exit 9' TERM; touch ", file("ready"), "; while :; do sleep 0.01; done")}, ""));
  ASSERT_TRUE(eventually([&] { return ::access(file("ready").c_str(), F_OK) == 0; }));
  ::kill(pid_, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(pid_, &status, 0), pid_);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(::access(file("heard").c_str(), F_OK), 0);
}

TEST_F(DaemonTest, SaysWhyAnEntrypointDoesNotStart) {
  start(start_elsewhere({"nonexistent-command-4711"}, ""));
  EXPECT_EQ(report_.step, wire::Step::entrypoint);
  EXPECT_EQ(report_.sys, ENOENT);
}

TEST_F(DaemonTest, HoldsTheSandboxWhenTheEntrypointOnlyWaits) {
  start(start_elsewhere({"tail", "-f", "/dev/null"}, ""));
  EXPECT_EQ(report_.step, wire::Step::none);
  EXPECT_EQ(ask("GET", "/ping").status, 200);
  EXPECT_EQ(read_text(cat("/proc/", pid_, "/task/", pid_, "/children")), "") << "no process was started for it";
}

TEST_F(DaemonTest, TheTokenIsNotInTheEnvironmentOfPrograms) {
  ::setenv("EXECD_ACCESS_TOKEN", "s3cret", 1);
  start(start_elsewhere({}, "s3cret"));
  ::unsetenv("EXECD_ACCESS_TOKEN");
  auto reply = ask("POST", "/command", R"({"command":"env"})", "X-EXECD-ACCESS-TOKEN: s3cret\r\n");
  EXPECT_NE(reply.body.find("PATH="), std::string::npos);
  EXPECT_EQ(reply.body.find("s3cret"), std::string::npos);
}

// ---- the proxy ----

Fd listen_on_loopback(std::uint16_t& port) {
  Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(listener.get(), 4), 0);
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  port = ::ntohs(address.sin_port);
  return listener;
}

// Nobody listens there: it was free a moment ago.
std::uint16_t free_port() {
  std::uint16_t port = 0;
  listen_on_loopback(port);
  return port;
}

// A service on 127.0.0.1 that answers one connection with `answer` and keeps what it was sent.
class Backend {
 public:
  explicit Backend(std::string answer) : listener_(listen_on_loopback(port_)) {
    thread_ = std::thread([this, answer = std::move(answer)] { serve(answer); });
  }
  ~Backend() { join(); }
  std::uint16_t port() const { return port_; }
  const std::string& request() {
    join();
    return request_;
  }

 private:
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  void serve(const std::string& answer) {
    Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char bytes[4096];
    while (request_.find("\r\n\r\n") == std::string::npos) {
      auto n = ::recv(peer.get(), bytes, sizeof bytes, 0);
      if (n <= 0) return;
      request_.append(bytes, static_cast<std::size_t>(n));
    }
    [[maybe_unused]] auto sent = ::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    if (!answer.starts_with("HTTP/1.1 101")) return;
    for (auto n = ::recv(peer.get(), bytes, sizeof bytes, 0); n > 0; n = ::recv(peer.get(), bytes, sizeof bytes, 0))
      sent = ::send(peer.get(), bytes, static_cast<std::size_t>(n), MSG_NOSIGNAL);
  }

  std::uint16_t port_ = 0;
  Fd listener_;
  std::string request_;
  std::thread thread_;
};

TEST_F(DaemonTest, ListensOnAPortOutsideNativeSandboxes) {
  Start begin = start_elsewhere({}, "");
  std::uint16_t port = begin.port = free_port();
  start(std::move(begin));
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = ::htons(port);
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  std::string_view request = "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n";
  ASSERT_EQ(::send(socket.get(), request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  char answer[64] = {};
  EXPECT_GT(::recv(socket.get(), answer, sizeof answer - 1, 0), 0);
  EXPECT_TRUE(std::string_view(answer).starts_with("HTTP/1.1 200 ")) << answer;
}

TEST_F(DaemonTest, ForwardsToServicesOfTheSandbox) {
  start();
  Backend backend("HTTP/1.1 203 Fine\r\nContent-Length: 5\r\nX-Own: 1\r\nConnection: close\r\n\r\nhello");
  auto reply = ask("GET", cat("/proxy/", backend.port(), "/a%20b/c?q=1&r"), {}, "OPEN-SANDBOX-API-KEY: k\r\nX-Mine: 2\r\n");
  EXPECT_EQ(reply.status, 203);
  EXPECT_EQ(reply.body, "hello");
  EXPECT_TRUE(reply.has("X-Own: 1"));
  EXPECT_TRUE(backend.request().starts_with("GET /a%20b/c?q=1&r HTTP/1.1\r\n")) << backend.request();
  EXPECT_NE(backend.request().find("X-Mine: 2\r\n"), std::string::npos);
  EXPECT_NE(backend.request().find("X-Forwarded-Proto: http\r\n"), std::string::npos);
  EXPECT_EQ(backend.request().find("API-KEY"), std::string::npos) << "keys are not for programs";
}

TEST_F(DaemonTest, ForwardsUpgradedConnections) {
  start();
  Backend backend("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
  Wire wire = connect();
  wire.request("GET", cat("/proxy/", backend.port(), "/ws"), {}, "Connection: Upgrade\r\nUpgrade: echo\r\n");
  EXPECT_EQ(wire.head().status, 101);
  wire.send("back and forth");
  EXPECT_EQ(wire.take(14), "back and forth");
  wire.close();
}

TEST_F(DaemonTest, AServiceThatIsNotThereIsABadGateway) {
  start();
  std::uint16_t port = free_port();
  auto reply = ask("GET", cat("/proxy/", port, "/"));
  EXPECT_EQ(reply.status, 502);
  EXPECT_EQ(reply.body, "Bad Gateway");
  EXPECT_EQ(ask("GET", "/proxy//x").status, 400);
  EXPECT_EQ(ask("GET", "/proxy/99999/x").status, 400);
  EXPECT_EQ(ask("GET", "/proxy/0/x").status, 400);
}

TEST_F(DaemonTest, IsItsOwnServiceOnItsOwnPort) {
  start();
  EXPECT_EQ(ask("GET", "/proxy/44772/ping").status, 200);
  EXPECT_EQ(ask("GET", "/proxy/44772/proxy/44772/ping").status, 200);
  EXPECT_EQ(ask("GET", "/proxy/44772/nope").status, 404);
  auto reply = ask("POST", "/proxy/44772/command", R"({"command":"echo inside"})");
  EXPECT_NE(reply.body.find("\"inside\""), std::string::npos);
}

// ---- a native sandbox ----

class NativeTest : public DaemonTest {
 protected:
  static constexpr std::uint32_t kHeld = 1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER | 1u << CAP_KILL | 1u << CAP_SETGID |
                                         1u << CAP_SETUID | 1u << CAP_SETPCAP | 1u << CAP_FSETID | 1u << CAP_NET_BIND_SERVICE;

  // What launch leaves behind: another uid with a few capabilities, and nothing to gain by exec.
  static void become_agent() {
    ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    ::syscall(SYS_setgroups, 0, nullptr);
    ::syscall(SYS_setresgid, kAgentUid, kAgentUid, kAgentUid);
    ::syscall(SYS_setresuid, kAgentUid, kAgentUid, kAgentUid);
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2] = {};
    sets[0].effective = sets[0].permitted = kHeld;
    ::syscall(SYS_capset, &head, sets);
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  }

  void start_native(std::string_view more) {
    auto setup = parse_setup(cat(R"({"env":{"FROM_SETUP":"yes"},"cwd":"/usr","home":"/tmp",)", more, "}"));
    ASSERT_TRUE(setup);
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    Fd ready(ends[0]);
    Fd report(ends[1]);
    ::chmod(dir_.c_str(), 0777);
    pid_ = ::fork();
    if (pid_ == 0) {
      become_agent();
      Start begin;
      begin.setup = *std::move(setup);
      begin.socket_path = socket_path();
      begin.report = std::move(report);
      run_daemon(std::move(begin));
    }
    report.reset();
    ASSERT_EQ(::read(ready.get(), &report_, sizeof report_), static_cast<ssize_t>(sizeof report_));
  }
  Texts capabilities(std::string_view more = {}) const {
    return output_of(run("grep -E '^(Cap|NoNew)' /proc/self/status | tr -d '\\t'", more));
  }
};

TEST_F(NativeTest, ProgramsOfAUserSandboxHaveNoCapabilityAtAll) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  start_native(R"("uid":61000,"gid":61001)");
  Texts none{"stdout:CapInh:0000000000000000", "stdout:CapPrm:0000000000000000", "stdout:CapEff:0000000000000000",
             "stdout:CapBnd:0000000000000000", "stdout:CapAmb:0000000000000000", "stdout:NoNewPrivs:1"};
  EXPECT_EQ(capabilities(), none);
  EXPECT_EQ(capabilities(",\"uid\":0"), none) << "asking for uid 0 does not change that";
  EXPECT_EQ(output_of(run("id -u; id -g; id -G; pwd; echo $HOME $FROM_SETUP")),
            (Texts{"stdout:61000", "stdout:61001", "stdout:61001", "stdout:/usr", "stdout:/tmp yes"}));
  EXPECT_EQ(command("true", cat(",\"uid\":", kAgentUid)).status, 400);
  EXPECT_NE(error_code_of(run(cat("cat /proc/", pid_, "/environ"))), "") << "execd itself cannot be looked into";
  EXPECT_NE(error_code_of(run(cat("kill -9 ", pid_))), "");
}

TEST_F(NativeTest, ProgramsOfARootSandboxHaveExactlyEight) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  start_native(R"("uid":0,"gid":0,"keep_caps":true)");
  EXPECT_EQ(capabilities(), (Texts{"stdout:CapInh:0000000000000000", "stdout:CapPrm:00000000000004fb", "stdout:CapEff:00000000000004fb",
                                   "stdout:CapBnd:00000000000004fb", "stdout:CapAmb:0000000000000000", "stdout:NoNewPrivs:1"}));
  EXPECT_EQ(capabilities(",\"uid\":61000")[2], "stdout:CapEff:0000000000000000") << "another user of it has none";
}

TEST_F(NativeTest, TimeoutsReachProcessesOfTheSandboxsUser) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  start_native(R"("uid":61000,"gid":61000)");
  auto events =
      run(cat("(setsid sh -c 'trap \"\" TERM; echo $$ > ", file("pid"), "; while :; do sleep 1; done' &); sleep 60"), ",\"timeout\":500");
  EXPECT_EQ(error_code_of(events), "-1");
  pid_t pid = pid_in(file("pid"));
  ASSERT_GT(pid, 1);
  EXPECT_TRUE(eventually([&] { return !alive(pid); }));
}

TEST_F(NativeTest, KeepsTheOutputOfTheEntrypoint) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  start_native(R"("uid":61000,"gid":61000,"entrypoint":["sh","-c","echo started as $(id -u); echo oops >&2; sleep 60"])");
  EXPECT_EQ(report_.step, wire::Step::none);
  EXPECT_TRUE(eventually([&] { return ask("GET", "/osb/v1/entrypoint/logs").body == "started as 61000\noops\n"; }));
  EXPECT_EQ(ask("GET", "/osb/v1/entrypoint/logs?cursor=17").body, "oops\n");
  EXPECT_EQ(ask("GET", "/osb/v1/entrypoint/logs?cursor=22").body, "");
}

TEST_F(NativeTest, ReadsDescriptorsAndSetupOfLaunch) {
  char path[] = "/proc/self/fd/00";
  pid_t pid = ::fork();
  if (pid == 0) {
    int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
    int text = ::memfd_create("setup", 0);
    std::string json = R"({"env":{},"entrypoint":[],"cwd":"/","uid":1000,"gid":1000,"home":"/"})";
    bool ok = ::write(text, json.data(), json.size()) == static_cast<ssize_t>(json.size());
    ::dup2(listener, 13), ::dup2(text, 14), ::dup2(13, 3), ::dup2(14, 4), ::close(5), ::close(6);
    auto adopted = adopt_native();
    ok = ok && adopted && adopted->setup.who.uid == 1000 && adopted->listener && !adopted->report && !adopted->oom_counter;
    ok = ok && (::fcntl(3, F_GETFD) & FD_CLOEXEC) != 0 && ::fcntl(4, F_GETFD) < 0;
    ::_exit(ok ? 0 : 1);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0) << path;
}

// The daemon counts "oom_kill" in a file it is given; the test plays the kernel.
TEST_F(DaemonTest, AKillWhileTheOomCounterGrewIsOutOfMemory) {
  auto counter = file("memory.events");
  std::ofstream(counter) << "oom 0\noom_kill 3\n";
  Start begin = start_elsewhere({}, "");
  begin.oom_counter = Fd(::open(counter.c_str(), O_RDONLY | O_CLOEXEC));
  start(std::move(begin));
  EXPECT_EQ(text_of(run("kill -9 $$").back(), "cause"), "signalled");
  auto events = run(cat("printf 'oom 1\\noom_kill 4\\n' > ", counter, "; kill -9 $$"));
  EXPECT_EQ(text_of(events.back(), "cause"), "out_of_memory");
  EXPECT_EQ(error_code_of(events), "137");
  EXPECT_EQ(text_of(run("kill -9 $$").back(), "cause"), "signalled") << "the next one is not blamed on it";
}

TEST(Binary, IsStaticAndSmall) {
  char self[4096];
  auto n = ::readlink("/proc/self/exe", self, sizeof self);
  std::string path(self, n > 0 ? static_cast<std::size_t>(n) : 0);
  path = path.substr(0, path.rfind('/')) + "/opensandbox-execd";
  std::string elf = read_text(path);
  if (elf.empty()) GTEST_SKIP() << "opensandbox-execd is not built here";
  EXPECT_LE(elf.size(), 2'000'000u);
  Elf64_Ehdr head;
  ASSERT_GT(elf.size(), sizeof head);
  std::memcpy(&head, elf.data(), sizeof head);
  for (std::size_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part;
    std::memcpy(&part, elf.data() + head.e_phoff + i * sizeof part, sizeof part);
    EXPECT_NE(part.p_type, static_cast<Elf64_Word>(PT_INTERP)) << "it needs a loader";
  }
}

}  // namespace
}  // namespace osb::execd
