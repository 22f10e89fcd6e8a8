// What a running sandbox is, measured from inside and outside, each denial with its control.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernel/host_traces.h"
#include "tests/kernel/kernel_test.h"
#include "tests/kernel/launch_harness.h"

namespace osb::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using wire::Step;

class Sandbox : public testing::Test {
 protected:
  void SetUp() override { NEED(kernel_test::need_root()); }

  std::string make(std::function<void(wire::CreateRequest&)> change = {}) {
    auto id = random_id_text();
    auto request = launcher_.request(id);
    if (change) change(request);
    auto reply = launcher_.create(request);
    EXPECT_EQ(reply.failed, Step::none) << wire::name_of(reply.failed) << ": " << reply.detail;
    pid_ = reply.pid;
    first_id_ = reply.id_base;
    return id;
  }
  static void root_mode(wire::CreateRequest& request) { request.policy.user = UserMode::root; }
  static void writable(wire::CreateRequest& request) { request.policy.root = RootMode::writable; }

  LaunchHarness launcher_;
  int pid_ = 0;
  std::uint32_t first_id_ = 0;
};

TEST_F(Sandbox, UserModeHasNoCapabilityInAnySet) {
  auto id = make();
  auto inside = launcher_.run(id, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
    EXPECT_THAT(inside, HasSubstr(cat(set, ":\\t0000000000000000")));
  EXPECT_THAT(inside, HasSubstr("NoNewPrivs:\\t1"));
  EXPECT_THAT(inside, HasSubstr("Seccomp:\\t2"));
  EXPECT_THAT(read_text("/proc/self/status"), Not(HasSubstr("CapEff:\t0000000000000000")));  // control: the same file outside
}

// CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID and SETUID, and no way to hand any of them on.
TEST_F(Sandbox, ItsFirstProcessHoldsSixCapabilitiesThatNoProgramCanRegain) {
  make();
  auto status = read_text(cat("/proc/", pid_, "/status"));
  for (const char* set : {"CapPrm", "CapEff"}) EXPECT_THAT(status, HasSubstr(cat(set, ":\t00000000000000eb")));
  for (const char* set : {"CapInh", "CapBnd", "CapAmb"}) EXPECT_THAT(status, HasSubstr(cat(set, ":\t0000000000000000")));
}

TEST_F(Sandbox, RootModeHasExactlyTheEight) {
  auto id = make(root_mode);
  auto inside = launcher_.run(id, "id -u; grep -E '^Cap' /proc/self/status");
  EXPECT_THAT(inside, HasSubstr("\"text\":\"0\""));
  for (const char* set : {"CapPrm", "CapEff", "CapBnd"}) EXPECT_THAT(inside, HasSubstr(cat(set, ":\\t00000000000004fb")));
  for (const char* set : {"CapInh", "CapAmb"}) EXPECT_THAT(inside, HasSubstr(cat(set, ":\\t0000000000000000")));
}

TEST_F(Sandbox, IdsMapToAPrivateRangeThatIsNeverTheHostsRoot) {
  make();
  auto map = read_text(cat("/proc/", pid_, "/uid_map"));
  EXPECT_GE(first_id_, 0x40000000u);
  EXPECT_EQ(split(trim(map), ' ').front(), "0");
  EXPECT_THAT(map, HasSubstr(cat(first_id_)));
  EXPECT_THAT(map, HasSubstr("65536"));
}

TEST_F(Sandbox, TheProgramOfItsFirstProcessIsReadAndExecutedFromLargePagesThatNobodyCanWrite) {
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "NOT TESTED: builds with sanitizers are linked with lld, which does not lay execd out on large pages; others are tested";
#endif
  make();
  auto maps = read_text(cat("/proc/", pid_, "/maps"));
  EXPECT_THAT(maps, HasSubstr("00200000-00400000 r--p"));
  EXPECT_THAT(maps, HasSubstr("00400000-00600000 r-xp"));
  EXPECT_THAT(maps, Not(HasSubstr("rwx")));
}

TEST_F(Sandbox, TwoSandboxesShareNoRangeAndNoNamespace) {
  make();
  int first_pid = pid_;
  auto first_range = first_id_;
  make();
  EXPECT_NE(first_id_, first_range);
  for (const char* kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}) {
    auto of = [&](const std::string& pid) { return std::filesystem::read_symlink(cat("/proc/", pid, "/ns/", kind)).string(); };
    EXPECT_NE(of(cat(first_pid)), of(cat(pid_))) << kind;
    EXPECT_NE(of("self"), of(cat(pid_))) << kind;
  }
}

TEST_F(Sandbox, TheNetworkIsLoopbackOnly) {
  auto id = make();
  auto inside = launcher_.run(id, "cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '");
  EXPECT_THAT(inside, HasSubstr("\"stdout\",\"text\":\"lo\""));
  EXPECT_THAT(inside, Not(HasSubstr("eth")));
  EXPECT_THAT(launcher_.run(id, "exec 3<>/dev/tcp/1.1.1.1/80"), HasSubstr("unreachable"));
  // Control: loopback inside works.
  EXPECT_THAT(launcher_.run(id,
                            "timeout 5 python3 -c 'import socket as s; l=s.create_server((\"127.0.0.1\",80)); "
                            "c=s.create_connection((\"127.0.0.1\",80)); print(\"connected\")'"),
              HasSubstr("connected"));
}

TEST_F(Sandbox, HostFilesAreNotThere) {
  auto id = make();
  auto canary = "canary-" + random_hex(8);
  std::ofstream("/etc/osb-test-canary") << canary;
  auto inside = launcher_.run(
      id,
      "cat /etc/osb-test-canary /proc/1/root/etc/osb-test-canary /proc/self/root/../../etc/osb-test-canary /etc/shadow; ls /root /home");
  EXPECT_THAT(inside, Not(HasSubstr(canary)));
  EXPECT_THAT(inside, Not(HasSubstr("root:$")));
  EXPECT_THAT(inside, HasSubstr("No such file"));
  EXPECT_EQ(read_text("/etc/osb-test-canary"), canary);  // control: the host has it
  std::filesystem::remove("/etc/osb-test-canary");
}

TEST_F(Sandbox, ReadOnlyRootRefusesAndWritableRootKeepsTheHostClean) {
  auto id = make();
  EXPECT_THAT(launcher_.run(id, "touch /usr/osb-test-file"), HasSubstr("Read-only file system"));
  EXPECT_THAT(launcher_.run(id, "touch /workspace/x /tmp/x /home/user/x /run/x && echo fine"), HasSubstr("fine"));
  auto open = make([](auto& request) { writable(request), root_mode(request); });
  EXPECT_THAT(launcher_.run(open, "touch /usr/osb-test-file /etc/osb-test-file && ls /usr/osb-test-file"),
              HasSubstr("\"/usr/osb-test-file\""));
  EXPECT_FALSE(std::filesystem::exists("/usr/osb-test-file"));
  EXPECT_THAT(launcher_.run(id, "ls /usr/osb-test-file"), HasSubstr("No such file"));
}

TEST_F(Sandbox, ThePrivilegedDoorsAreShut) {
  auto id = make(root_mode);
  for (const char* attempt : {"mount -t tmpfs x /mnt", "unshare -U true", "unshare -m true", "chroot / true", "mknod /tmp/sda b 8 0",
                              "nsenter -t 1 -a true", "hostname other", "echo 1 > /proc/sysrq-trigger",
                              "echo x > /proc/sys/kernel/core_pattern", "nice -n -20 true 2>&1 | grep cannot && false"})
    EXPECT_THAT(launcher_.run(id, attempt), HasSubstr("\"type\":\"error\"")) << attempt;
  EXPECT_THAT(launcher_.run(id, "find /proc/sys -writable -type f 2>/dev/null | head -1 | grep . || echo none"), HasSubstr("none"));
  EXPECT_THAT(launcher_.run(id, "chown 5:5 /tmp && mkdir /tmp/d && rmdir /tmp/d && echo fine"),
              HasSubstr("fine"));  // control: what root mode is for
}

TEST_F(Sandbox, HostGlobalProcFilesAreEmptyOrRefused) {
  auto id = make(root_mode);
  EXPECT_THAT(
      launcher_.run(id, "cat /proc/kallsyms /proc/keys /proc/interrupts /proc/iomem /proc/timer_list /proc/config.gz 2>/dev/null | wc -c"),
      HasSubstr("\"text\":\"0\""));
  EXPECT_GT(read_text("/proc/interrupts").size(), 0u);  // control
}

TEST_F(Sandbox, UnderTheNarrowestProfileSeesProcessesAndNothingOfTheMachine) {
  constexpr const char* kOthers =
      "cd /proc; for f in *; do case $f in [0-9]*|self|thread-self) ;; *) echo machine:$f;; esac; done; head -1 self/status";
  auto narrow = launcher_.run(make([](auto& request) { request.policy.syscalls = SyscallProfile::minimal; }), kOthers);
  EXPECT_THAT(narrow, testing::AllOf(HasSubstr("Name:"), Not(HasSubstr("machine:"))));
  EXPECT_THAT(launcher_.run(make(), kOthers), HasSubstr("machine:meminfo"));  // control
}

TEST_F(Sandbox, ItReadsItsOwnSize) {
  auto id = make([](auto& request) { request.limits.memory_bytes = 300ull << 20; });
  EXPECT_THAT(launcher_.run(id, "grep MemTotal /proc/meminfo; cat /sys/fs/cgroup/memory.max"),
              testing::AllOf(HasSubstr("307200 kB"), HasSubstr("\"314572800\"")));
}

TEST_F(Sandbox, MemoryPidsAndDiskLimitsHold) {
  auto id = make([](auto& request) {
    request.limits.memory_bytes = 128ull << 20;
    request.limits.pids = 32;
    request.limits.disk_bytes = 8ull << 20;
  });
  auto killed = launcher_.run(id, "python3 -c 'x = bytearray(400 << 20)'");
  EXPECT_THAT(killed, HasSubstr("out_of_memory"));
  EXPECT_THAT(launcher_.run(id, "for i in $(seq 100); do sleep 5 & done; wait -n; echo $?"), HasSubstr("Resource temporarily unavailable"));
  EXPECT_THAT(launcher_.run(id, "head -c 20M /dev/zero > /workspace/big; stat -c %s /workspace/big"),
              testing::AnyOf(HasSubstr("No space left"), HasSubstr("File size limit"), HasSubstr("File too large"), HasSubstr("153")));
  EXPECT_THAT(launcher_.run(id, "echo alive"), HasSubstr("alive"));  // control: only the offenders died
}

// The same numbers under the names of whichever hierarchy this host has.
TEST_F(Sandbox, LimitsStandInTheKernelAsTheyWereAsked) {
  make([](auto& request) {
    request.limits.memory_bytes = 200ull << 20;
    request.limits.cpu_millis = 250;
    request.limits.pids = 77;
    request.limits.io_bytes_per_second = 12'000'000;
    request.limits.io_operations_per_second = 345;
  });
  std::string all;
  for (const auto& group : cgroups_of(launcher_.instance()))
    for (const auto& file : std::filesystem::directory_iterator(group)) {
      auto name = file.path().filename().string();
      if (name == "memory.max" || name == "memory.limit_in_bytes") all += cat("memory ", read_text(file.path()));
      if (name == "memory.swap.max" || name == "memory.swappiness") all += cat("swap ", read_text(file.path()));
      if (name == "cpu.max" || name == "cpu.cfs_quota_us") all += cat("cpu ", read_text(file.path()));
      if (name == "pids.max") all += cat("pids ", read_text(file.path()));
      if (name == "io.max" || name.starts_with("blkio.throttle.write_")) all += cat("io ", read_text(file.path()));
    }
  EXPECT_THAT(all, HasSubstr("memory 209715200\n"));
  EXPECT_THAT(all, HasSubstr("swap 0\n"));
  EXPECT_THAT(all, HasSubstr("cpu 25000"));
  EXPECT_THAT(all, HasSubstr("pids 77\n"));
  EXPECT_THAT(all, HasSubstr("12000000"));
  EXPECT_THAT(all, HasSubstr("345"));
}

TEST_F(Sandbox, CpuTimeStaysWithinTheQuota) {
  auto id = make([](auto& request) { request.limits.cpu_millis = 200; });
  launcher_.http(id, "POST", "/command", R"({"command":"for i in 1 2 3 4; do (while :; do :; done) & done; wait","background":true})");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  auto before = launcher_.usage(id).cpu_nanos;
  auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::seconds(2));
  auto used = static_cast<double>(launcher_.usage(id).cpu_nanos - before);
  auto wall = static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count());
  EXPECT_LT(used / wall, 0.3);   // asked for 0.2; the quota is dealt out in periods of 100 ms
  EXPECT_GT(used / wall, 0.02);  // control: it does run
}

TEST_F(Sandbox, InodesAreCounted) {
  auto id = make([](auto& request) { request.limits.disk_inodes = 64; });
  EXPECT_THAT(launcher_.run(id, "cd /workspace; for i in $(seq 100); do : > f$i || break; done; ls | wc -l"), HasSubstr("No space left"));
}

TEST_F(Sandbox, ADiskLargerThanMemoryLivesOnALoopDeviceThatFreesItself) {
  auto loops = [] {
    std::size_t used = 0;
    for (int i = 0; i < 64; ++i) used += std::filesystem::exists(cat("/sys/block/loop", i, "/loop/backing_file")) ? 1 : 0;
    return used;
  };
  auto before = loops();
  auto id = make([](auto& request) {
    request.limits.disk_bytes = 512ull << 20;
    request.limits.memory_bytes = 64ull << 20;
  });
  EXPECT_THAT(launcher_.run(id, "df --output=fstype /workspace; head -c 200M /dev/zero > /workspace/big && echo fits"),
              testing::AllOf(HasSubstr("ext4"), HasSubstr("fits")));
  EXPECT_EQ(loops(), before + 1);
  EXPECT_EQ(launcher_.ask(wire::Op::destroy, id), 0);
  EXPECT_TRUE(eventually([&] { return loops() == before; }));
}

TEST_F(Sandbox, FreezeStopsEveryProcessAndThawLetsThemGoOn) {
  auto id = make();
  launcher_.http(id, "POST", "/command", R"({"command":"while :; do date +%s%N > /workspace/beat; done","background":true})");
  auto beat = [&] { return read_text(cat("/proc/", pid_, "/root/workspace/beat")); };
  ASSERT_TRUE(eventually([&] { return !beat().empty(); }));
  EXPECT_EQ(launcher_.ask(wire::Op::freeze, id), 0);
  auto still = beat();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(beat(), still);
  EXPECT_EQ(launcher_.ask(wire::Op::thaw, id), 0);
  EXPECT_TRUE(eventually([&] { return beat() != still && !beat().empty(); }));
  EXPECT_EQ(launcher_.ask(wire::Op::freeze, id), 0);
  EXPECT_EQ(launcher_.ask(wire::Op::destroy, id), 0);  // a frozen sandbox dies all the same
  EXPECT_TRUE(launcher_.wait_exited(std::chrono::seconds(2)));
}

TEST_F(Sandbox, ItsDeadlineEndsProcessesThatIgnoreEverything) {
  auto id = random_id_text();
  auto request = launcher_.request(id);
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  request.deadline_boot_nanos = static_cast<std::uint64_t>(now.tv_sec + 2) * 1'000'000'000;
  ASSERT_EQ(launcher_.create(request).failed, Step::none);
  launcher_.http(
      id, "POST", "/command",
      R"({"command":"trap '' TERM INT HUP; for i in 1 2 3 4; do setsid bash -c 'trap \"\" TERM; (while :; do :; done) & disown' & done; while :; do :; done","background":true})");
  auto ended = launcher_.wait_exited(std::chrono::seconds(6));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->cause, wire::Cause::expired);
  EXPECT_TRUE(cgroups_of(launcher_.instance()).empty());
}

TEST_F(Sandbox, AForkBombIsGoneSoonAfterDestroy) {
  auto id = make();
  launcher_.http(id, "POST", "/command", R"({"command":":(){ :|:& };:","background":true})");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(launcher_.ask(wire::Op::destroy, id), 0);
  EXPECT_TRUE(launcher_.wait_exited(std::chrono::seconds(2)));
  EXPECT_TRUE(cgroups_of(launcher_.instance()).empty());
}

TEST_F(Sandbox, ExecdStartsPayloadsWithThreeDescriptors) {
  auto id = make();
  EXPECT_THAT(launcher_.run(id, "bash -c 'echo /proc/$$/fd/*'"), Not(HasSubstr("/fd/4 ")));
  EXPECT_THAT(launcher_.run(id, "cat /proc/1/environ; ls /proc/1/fd"), HasSubstr("No such file"));  // execd is invisible
}

TEST_F(Sandbox, ItsProgramsHaveTheirOwnGroupsInOneSessionThatHasNoTerminal) {
  auto id = make();
  const std::string show =
      "read -r pid name state parent group session tty rest < /proc/self/stat; echo own $((group == pid)) $session $tty";
  for (int i = 0; i < 3; ++i) EXPECT_THAT(launcher_.run(id, show), HasSubstr("own 1 1 0"));
  EXPECT_THAT(launcher_.run(id, "echo key > /dev/tty"), HasSubstr("No such device or address"));
}

TEST_F(Sandbox, AKillOfOnesOwnIsNoShortageOfMemoryAfterSomebodyElsesWas) {
  auto id = make([](auto& request) { request.limits.memory_bytes = 64ull << 20; });
  EXPECT_THAT(launcher_.run(id, "echo first"), HasSubstr("first"));
  EXPECT_THAT(launcher_.run(id, "(tail /dev/zero); echo left $?"), HasSubstr("left 137"));
  EXPECT_THAT(launcher_.run(id, "kill -9 $$"), HasSubstr("\"cause\":\"signalled\""));
  EXPECT_THAT(launcher_.run(id, "exec tail /dev/zero"), HasSubstr("\"cause\":\"out_of_memory\""));
}

TEST_F(Sandbox, ALauncherThatWasKilledIsReplacedAndTheSandboxLives) {
  auto id = make();
  launcher_.kill_launcher();
  EXPECT_THAT(launcher_.run(id, "echo still here"), HasSubstr("still here"));
  launcher_.start();
  EXPECT_EQ(launcher_.ask(wire::Op::freeze, id), 0);
  EXPECT_EQ(launcher_.ask(wire::Op::thaw, id), 0);
  EXPECT_THAT(launcher_.run(id, "echo still here"), HasSubstr("still here"));
  EXPECT_EQ(launcher_.ask(wire::Op::destroy, id), 0);
  EXPECT_TRUE(launcher_.wait_exited());
  EXPECT_TRUE(traces_of(launcher_.instance()).cgroups.empty());
  EXPECT_TRUE(traces_of(launcher_.instance()).ledger.empty());
}

// As when thousands of sandboxes are deleted at once: the answers are more than a socket holds.
TEST_F(Sandbox, AClientThatReadsLateGetsEveryAnswerAndIsNotDropped) {
  auto id = make();
  std::size_t asked = 0;
  for (std::size_t more = 1; more > 0 && asked < 5000; asked += more) {
    more = launcher_.greet_deaf(5000 - asked);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that it has a chance to answer, and to find no room
  }
  ASSERT_GT(asked, 100u);
  for (std::size_t i = 0; i < asked; ++i) ASSERT_TRUE(launcher_.hear_greeting()) << i << " of " << asked;
  EXPECT_EQ(launcher_.ask(wire::Op::destroy, id), 0);
  EXPECT_TRUE(launcher_.wait_exited());
}

TEST_F(Sandbox, APrivateInstanceEndsWithItsLastClientAndLeavesNoDirectory) {
  make();
  make();
  launcher_.disconnect();
  EXPECT_TRUE(launcher_.wait_exit());
  EXPECT_FALSE(std::filesystem::exists(launcher_.run_dir()));
  EXPECT_TRUE(cgroups_of(launcher_.instance()).empty());
}

TEST_F(Sandbox, DialReachesAServerInsideAndNothingElse) {
  auto id = make();
  launcher_.http(
      id, "POST", "/command",
      R"({"command":"python3 -c 'import socket as s; l=s.create_server((\"127.0.0.1\",8080)); c,_=l.accept(); c.sendall(b\"from inside\")'","background":true})");
  std::string got;
  EXPECT_TRUE(eventually([&] {
    Fd socket;
    if (launcher_.ask(wire::Op::dial, id, &socket) != 0 || !socket) return false;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(8080);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int flags = ::fcntl(socket.get(), F_GETFL);
    ::fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK);
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
    char buffer[64];
    auto n = ::read(socket.get(), buffer, sizeof buffer);
    if (n > 0) got.assign(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }));
  EXPECT_EQ(got, "from inside");
}

}  // namespace
}  // namespace osb::test
