// First processes made ahead of time: what they become is the same sandbox, whoever kills them loses nothing, and none outlives its
// launcher.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>

#include "sys/raw.h"
#include "tests/kernel/host_traces.h"
#include "tests/kernel/kernel_test.h"
#include "tests/kernel/launch_harness.h"

namespace osb::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using wire::Step;

constexpr int kKept = 2;

// All that a sandbox can see of its walls; names and numbers that differ between any two are left out.
constexpr const char* kWalls =
    "cut -d' ' -f 4-6,7- /proc/self/mountinfo | sed -E 's/(master|shared):[0-9]+ //; s/,(lowerdir|gid|userxattr)[^ ]*//g' | sort;"
    "grep -E '^(Cap|NoNewPrivs|Seccomp|Uid|Gid|Groups)' /proc/self/status; cat /proc/self/limits /proc/self/cgroup /proc/meminfo;"
    "ls -A / /dev /proc/1 2>&1; ls -ld /tmp /var/tmp /run /dev/shm /workspace /home/user | cut -d' ' -f1-4; ip addr 2>&1; id; pwd; umask;"
    "for f in kcore keys kallsyms interrupts config.gz; do cat /proc/$f; done 2>&1; df --output=size,itotal /tmp /workspace; ls "
    "/proc/self/fd";

class Sprout : public testing::Test {
 protected:
  void SetUp() override { NEED(kernel_test::need_root()); }

  static std::string make(LaunchHarness& launcher, const std::function<void(wire::CreateRequest&)>& change = {}) {
    auto id = random_id_text();
    auto request = launcher.request(id);
    if (change) change(request);
    auto reply = launcher.create(request);
    EXPECT_EQ(reply.failed, Step::none) << wire::name_of(reply.failed) << ": " << reply.detail;
    last_pid_ = reply.pid;
    return id;
  }
  static void end(LaunchHarness& launcher, const std::string& id) {
    EXPECT_EQ(launcher.ask(wire::Op::destroy, id), 0);
    EXPECT_TRUE(launcher.wait_exited());
  }
  // Processes in berths; with no sandbox alive, these are the sprouts.
  static std::set<int> in_berths(const LaunchHarness& launcher) {
    std::set<int> found;
    for (int pid : processes_of(launcher.instance()))
      if (read_text(cat("/proc/", pid, "/cgroup")).contains("/berth-")) found.insert(pid);
    return found;
  }
  // Children of the launcher that are in no berth and divide into those that are.
  static std::vector<int> stems_of(const LaunchHarness& launcher) {
    std::vector<int> found;
    for (const auto& child : split(read_text(cat("/proc/", launcher.pid(), "/task/", launcher.pid(), "/children")), ' '))
      if (auto pid = parse_int<int>(child); pid && !read_text(cat("/proc/", child, "/cgroup")).contains("/berth-")) found.push_back(*pid);
    return found;
  }
  // Two lives, after which the launcher prepares for more.
  static std::set<int> sprouts_after_two_lives(LaunchHarness& launcher) {
    for (int life = 0; life < 2; ++life) end(launcher, make(launcher));
    EXPECT_TRUE(eventually([&] { return in_berths(launcher).size() == kKept; }));
    return in_berths(launcher);
  }

  static inline int last_pid_ = 0;
  LaunchHarness launcher_{{"--pool", std::to_string(kKept)}};
};

TEST_F(Sprout, BecomesTheSameSandboxAsOneMadeFromNothing) {
  LaunchHarness without({"--pool", "0"});
  auto fresh = without.run(make(without), kWalls);
  ASSERT_THAT(fresh, HasSubstr("NoNewPrivs"));
  auto sprouts = sprouts_after_two_lives(launcher_);
  auto id = make(launcher_);
  EXPECT_TRUE(sprouts.contains(last_pid_));
  auto text = [](std::string events) {  // run ids and times differ
    events.erase(0, events.find("\"stdout\""));
    std::string kept;
    for (auto part : split(events, ','))
      if (part.find("timestamp") == part.npos && part.find("execution_time") == part.npos) kept += std::string(part) + "\n";
    return kept;
  };
  EXPECT_EQ(text(launcher_.run(id, kWalls)), text(fresh));
}

TEST_F(Sprout, IsGivenANameOfItsOwnAndNothingOfTheOneBefore) {
  auto first = make(launcher_);
  launcher_.run(first, "echo secret > /tmp/a; echo secret > /workspace/a; echo secret > /dev/shm/a");
  end(launcher_, first);
  sprouts_after_two_lives(launcher_);
  auto second = make(launcher_);
  auto third = make(launcher_);
  EXPECT_THAT(launcher_.run(second, "ls -A /tmp /workspace /dev/shm /run; cat /tmp/a 2>&1"), Not(HasSubstr("secret")));
  EXPECT_THAT(launcher_.run(second, "hostname; cat /etc/hostname"), HasSubstr("sbx-" + second.substr(0, 8)));
  EXPECT_THAT(launcher_.run(third, "hostname; cat /etc/hostname"), HasSubstr("sbx-" + third.substr(0, 8)));
  EXPECT_NE(read_text(cat("/proc/", last_pid_, "/root/etc/machine-id")), "");
}

TEST_F(Sprout, OfAnotherSizeOrPolicyIsNotUsed) {
  auto sprouts = sprouts_after_two_lives(launcher_);
  auto small = make(launcher_, [](wire::CreateRequest& request) {
    request.limits.memory_bytes = 100ull << 20;
    request.limits.disk_bytes = 1 << 20;
  });
  EXPECT_FALSE(sprouts.contains(last_pid_));
  EXPECT_EQ(launcher_.usage(small).memory_limit_bytes, 100ull << 20);
  EXPECT_THAT(launcher_.run(small, "grep MemTotal /proc/meminfo; head -c 2M /dev/zero > /tmp/much || echo full"), HasSubstr("102400 kB"));
  EXPECT_THAT(launcher_.run(small, "head -c 2M /dev/zero > /tmp/much || echo full"), HasSubstr("full"));
  end(launcher_, small);
  auto narrow = make(launcher_, [](wire::CreateRequest& request) { request.policy.syscalls = SyscallProfile::minimal; });
  EXPECT_FALSE(sprouts.contains(last_pid_));
  EXPECT_THAT(launcher_.run(narrow, "cat /proc/meminfo 2>&1"), HasSubstr("No such file"));
}

TEST_F(Sprout, ThatWasKilledIsNotMissed) {
  for (int pid : sprouts_after_two_lives(launcher_)) {
    Fd pidfd(sys::raw::pidfd_open(pid));
    ::kill(pid, SIGKILL);
    pollfd ended{pidfd.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&ended, 1, 10'000), 1);
    EXPECT_TRUE(eventually([&] { return read_text(cat("/proc/", pid, "/status")).empty(); })) << "buried at once";
  }
  for (int life = 0; life < 2 * kKept; ++life) {
    auto id = make(launcher_);
    EXPECT_THAT(launcher_.run(id, "echo lives"), HasSubstr("lives"));
    end(launcher_, id);
  }
}

TEST_F(Sprout, DiesWithALauncherThatIsKilled) {
  auto sprouts = sprouts_after_two_lives(launcher_);
  ASSERT_FALSE(sprouts.empty());
  launcher_.kill_launcher();
  EXPECT_TRUE(eventually([&] { return in_berths(launcher_).empty(); }));
  launcher_.start();
  EXPECT_THAT(launcher_.run(make(launcher_), "echo lives"), HasSubstr("lives"));
}

TEST_F(Sprout, LeavesNothingWhenTheLauncherEnds) {
  ASSERT_FALSE(sprouts_after_two_lives(launcher_).empty());
  launcher_.disconnect();
  EXPECT_TRUE(launcher_.wait_exit());
  EXPECT_TRUE(in_berths(launcher_).empty());
  EXPECT_TRUE(cgroups_of(launcher_.instance()).empty());
}

// The stem is stopped, so the sprout it was asked for never comes, and then killed.
TEST_F(Sprout, ThatAStemTookAlongIsNotMissed) {
  LaunchHarness launcher({"--pool", std::to_string(kKept), "--stems", "1"});
  for (int life = 0; life < 2; ++life) end(launcher, make(launcher));
  for (int stem : stems_of(launcher)) {
    ::kill(stem, SIGSTOP);
    ::kill(stem, SIGKILL);
    // What is given to one that is on its way out is lost with it; that is another test's matter.
    EXPECT_TRUE(eventually([&] {
      auto stat = read_text(cat("/proc/", stem, "/stat"));
      return stat.empty() || stat.contains(") Z ");
    }));
  }
  for (int life = 0; life < 2 * kKept; ++life) {
    auto id = make(launcher);
    EXPECT_THAT(launcher.run(id, "echo lives"), HasSubstr("lives"));
    end(launcher, id);
  }
  EXPECT_TRUE(eventually([&] { return in_berths(launcher).size() == kKept; }));
  launcher.disconnect();
  EXPECT_TRUE(launcher.wait_exit());
  EXPECT_TRUE(cgroups_of(launcher.instance()).empty());
}

TEST_F(Sprout, IsNotMadeForASingleSandbox) {
  auto only = make(launcher_);
  auto alone = in_berths(launcher_);
  EXPECT_EQ(alone.size(), 1u);
  end(launcher_, only);
  EXPECT_FALSE(eventually([&] { return !in_berths(launcher_).empty(); }, std::chrono::milliseconds(200)));
}

// Every one of them dies on its way; the launcher must not go on making them.
TEST_F(Sprout, ThatCannotBeMadeIsTriedOncePerCreate) {
  LaunchHarness launcher({"--pool", std::to_string(kKept), "--fail-at", "proc_masks"});
  auto turns = [&] {
    for (auto line : split(read_text(cat("/proc/", launcher.pid(), "/status")), '\n'))
      if (line.starts_with("voluntary_ctxt_switches:")) return parse_int<int>(trim(line.substr(line.find(':') + 1))).value_or(0);
    return 0;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(launcher.create(launcher.request(random_id_text())).failed, Step::proc_masks);
  int before = turns();
  EXPECT_FALSE(eventually([&] { return turns() > before + 100; }, std::chrono::milliseconds(400)));
  EXPECT_TRUE(in_berths(launcher).empty());
}

std::vector<Step> steps_of_a_sprout() {
  return {Step::hostname,
          Step::image_layers,
          Step::volume_sources,
          Step::root_overlay,
          Step::host_view,
          Step::restored_places,
          Step::root_switch,
          Step::sys,
          Step::dev,
          Step::etc,
          Step::scratch,
          Step::volume_mounts,
          Step::rlimits,
          Step::landlock_rules,
          Step::join_user,
          Step::capabilities,
          Step::no_new_privs,
          Step::landlock,
          Step::descriptors,
          Step::seccomp,
          Step::exec};
}

class EveryStepOfASprout : public testing::TestWithParam<Step> {
  void SetUp() override { NEED(kernel_test::need_root()); }
};

TEST_P(EveryStepOfASprout, ThatFailsIsNamedAndEndsIt) {
  LaunchHarness launcher({"--pool", "1", "--fail-at", wire::name_of(GetParam())});
  auto in_berth = [&] {
    for (int pid : processes_of(launcher.instance()))
      if (read_text(cat("/proc/", pid, "/cgroup")).contains("/berth-")) return pid;
    return 0;
  };
  for (int attempt = 0; attempt < 2; ++attempt) EXPECT_EQ(launcher.create(launcher.request(random_id_text())).failed, GetParam());
  ASSERT_TRUE(eventually([&] { return in_berth() != 0; }));
  int sprout = in_berth();
  // It is there a moment before the launcher hears of it; a create in between does without.
  EXPECT_TRUE(eventually([&] {
    auto reply = launcher.create(launcher.request(random_id_text()));
    EXPECT_EQ(reply.failed, GetParam()) << wire::name_of(reply.failed);
    EXPECT_EQ(reply.sys, ECANCELED);
    return in_berth() != sprout;
  }));
  EXPECT_TRUE(ledger_of(launcher.run_dir()).empty());
}

INSTANTIATE_TEST_SUITE_P(Sprout, EveryStepOfASprout, testing::ValuesIn(steps_of_a_sprout()),
                         [](const auto& info) { return wire::name_of(info.param); });

}  // namespace
}  // namespace osb::test
