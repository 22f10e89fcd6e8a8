// Fault injection: every step of the create list fails once, and dies once; nothing of the sandbox may be left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <set>

#include "launch/id_range.h"
#include "sys/raw.h"
#include "tests/kernel/host_traces.h"
#include "tests/kernel/kernel_test.h"
#include "tests/kernel/launch_harness.h"

namespace osb::test {
namespace {

using wire::Step;

std::vector<Step> all_steps() {
  std::vector<Step> steps;
  for (auto i = static_cast<std::uint32_t>(Step::validate); i < static_cast<std::uint32_t>(Step::entrypoint); ++i) {
    auto step = static_cast<Step>(i);
    if (step != Step::id_range) steps.push_back(step);  // taken together with the user namespace
  }
  for (auto i = static_cast<std::uint32_t>(Step::entrypoint) + 1; i < static_cast<std::uint32_t>(Step::count_); ++i)
    steps.push_back(static_cast<Step>(i));
  return steps;
}

class EveryCreateStep : public testing::TestWithParam<Step> {
  void SetUp() override { NEED(kernel_test::need_root()); }
};

TEST_P(EveryCreateStep, ThatFailsIsNamedAndLeavesNothing) {
  LaunchHarness launcher({"--fail-at", wire::name_of(GetParam())});
  auto before = traces_of(launcher.instance());
  auto descriptors = open_descriptors_of(launcher.pid());
  auto reply = launcher.create(launcher.request(random_id_text()));
  EXPECT_EQ(reply.failed, GetParam()) << wire::name_of(reply.failed);
  EXPECT_EQ(reply.sys, ECANCELED);
  EXPECT_EQ(traces_of(launcher.instance()), before);
  // The pool may have refilled what the create took; apart from that no descriptor stays.
  EXPECT_TRUE(eventually([&] { return open_descriptors_of(launcher.pid()) <= descriptors + 4; }));
}

TEST_P(EveryCreateStep, WhoseProcessDiesLeavesNothing) {
  bool in_launcher = GetParam() < Step::cgroup_attach || GetParam() == Step::volume_helpers || GetParam() == Step::held_root;
  LaunchHarness launcher({"--die-at", wire::name_of(GetParam())});
  std::string instance = launcher.instance();
  auto before = traces_of(instance);
  auto reply = launcher.create(launcher.request(random_id_text()));
  EXPECT_NE(reply.failed, Step::none);
  if (in_launcher) {
    // The launcher itself is dead. The next one of this instance finds the ledger and removes what it names.
    ASSERT_TRUE(launcher.wait_exit());
    launcher.drop_extra_arguments();
    launcher.start();
  }
  EXPECT_TRUE(eventually([&] { return traces_of(instance) == before; }));
}

INSTANTIATE_TEST_SUITE_P(Create, EveryCreateStep, testing::ValuesIn(all_steps()),
                         [](const auto& info) { return wire::name_of(info.param); });

TEST(CreateSteps, WithoutInjectionTheSameCreateSucceeds) {
  NEED(kernel_test::need_root());
  LaunchHarness launcher;
  auto before = traces_of(launcher.instance());
  auto id = random_id_text();
  ASSERT_EQ(launcher.create(launcher.request(id)).failed, Step::none);
  EXPECT_NE(traces_of(launcher.instance()), before);
  EXPECT_EQ(launcher.ask(wire::Op::destroy, id), 0);
  ASSERT_TRUE(launcher.wait_exited());
  EXPECT_EQ(traces_of(launcher.instance()), before);
}

TEST(CreateSteps, AnEntrypointThatDoesNotExistIsNamed) {
  NEED(kernel_test::need_root());
  LaunchHarness launcher;
  auto before = traces_of(launcher.instance());
  auto reply = launcher.create(
      launcher.request(random_id_text()),
      R"({"env":{},"entrypoint":["/no/such/program"],"cwd":"/workspace","uid":1000,"gid":1000,"home":"/home/user","keep_caps":false})");
  EXPECT_EQ(reply.failed, Step::entrypoint) << wire::name_of(reply.failed);
  EXPECT_EQ(reply.sys, ENOENT);
  EXPECT_EQ(traces_of(launcher.instance()), before);
}

TEST(CreateSteps, AbsurdLimitsAreRefusedByTheLauncherToo) {
  NEED(kernel_test::need_root());
  LaunchHarness launcher;
  auto refused = [&](std::function<void(wire::CreateRequest&)> change) {
    auto request = launcher.request(random_id_text());
    change(request);
    return launcher.create(request).failed == Step::validate;
  };
  EXPECT_TRUE(refused([](auto& r) { r.limits.memory_bytes = 0; }));
  EXPECT_TRUE(refused([](auto& r) { r.limits.memory_bytes = ~0ull; }));
  EXPECT_TRUE(refused([](auto& r) { r.limits.pids = 0; }));
  EXPECT_TRUE(refused([](auto& r) { r.limits.cpu_millis = ~0u; }));
  EXPECT_TRUE(refused([](auto& r) { r.limits.disk_bytes = ~0ull; }));
  EXPECT_TRUE(refused([](auto& r) { r.limits.io_bytes_per_second = 0; }));
  EXPECT_TRUE(refused([](auto& r) { r.layer_count = 0; }));
  EXPECT_TRUE(refused([](auto& r) { r.layers[0].hex[3] = '/'; }));
  EXPECT_TRUE(refused([](auto& r) { r.id.text[4] = '.'; }));
  EXPECT_FALSE(refused([](auto&) {}));  // control
}

// The child of the launcher that divides into sandboxes. Their first processes have its name; it is the one outside every berth.
int stem_of(const LaunchHarness& launcher) {
  for (const auto& child : split(read_text(cat("/proc/", launcher.pid(), "/task/", launcher.pid(), "/children")), ' ')) {
    auto pid = parse_int<int>(child);
    bool stem = pid && read_text(cat("/proc/", child, "/cmdline")).contains("--stem") &&
                !read_text(cat("/proc/", child, "/cgroup")).contains("/berth-");
    if (stem) return *pid;
  }
  return 0;
}

// Killed, and its end of the socket closed: a signal alone takes effect whenever the scheduler likes.
void kill_stem(int stem) {
  Fd pidfd(sys::raw::pidfd_open(stem));
  ::kill(stem, SIGKILL);
  pollfd ended{pidfd.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&ended, 1, 10'000), 1);
}

TEST(CreateSteps, AStemThatWasKilledIsReplaced) {
  NEED(kernel_test::need_root());
  LaunchHarness launcher({"--stems", "1"});
  auto first = random_id_text();
  ASSERT_EQ(launcher.create(launcher.request(first)).failed, Step::none);
  int stem = stem_of(launcher);
  ASSERT_GT(stem, 0);
  kill_stem(stem);
  auto second = random_id_text();
  EXPECT_EQ(launcher.create(launcher.request(second)).failed, Step::none);
  EXPECT_THAT(launcher.run(first, "echo first lives"), testing::HasSubstr("first lives"));
  EXPECT_THAT(launcher.run(second, "echo second lives"), testing::HasSubstr("second lives"));
}

TEST(CreateSteps, AStemThatDoesNotAnswerFailsOneCreateAndIsReplaced) {
  NEED(kernel_test::need_root());
  LaunchHarness launcher({"--stems", "1"});
  auto before = traces_of(launcher.instance());
  ASSERT_TRUE(eventually([&] { return stem_of(launcher) != 0; }));
  ::kill(stem_of(launcher), SIGSTOP);
  EXPECT_EQ(launcher.create(launcher.request(random_id_text())).failed, Step::clone);
  EXPECT_TRUE(eventually([&] { return traces_of(launcher.instance()) == before; }));
  EXPECT_EQ(launcher.create(launcher.request(random_id_text())).failed, Step::none);  // control
}

ino_t program_of(int pid) {
  struct stat info{};
  EXPECT_EQ(::stat(cat("/proc/", pid, "/exe").c_str(), &info), 0);
  return info.st_ino;
}

TEST(CreateSteps, ACrowdDoesNotRunOneFile) {
  NEED(kernel_test::need_root());
  LaunchHarness launcher({"--stems", "1"});
  auto made = [&] { return program_of(launcher.create(launcher.request(random_id_text())).pid); };
  auto first = made();
  for (int i = 0; i < 300; ++i) ASSERT_EQ(made(), first);
  std::set<ino_t> programs;
  for (int i = 0; i < 300; ++i) programs.insert(made());
  EXPECT_EQ(programs.size(), 2u);
}

// Answers are told apart by their order alone, so none of a dead stem's may be taken for one of the next.
TEST(CreateSteps, AStemThatDiesWithWorkLosesThatWorkAndNothingElse) {
  NEED(kernel_test::need_root());
  LaunchHarness launcher({"--stems", "1"});
  auto before = traces_of(launcher.instance());
  ASSERT_TRUE(eventually([&] { return stem_of(launcher) != 0; }));
  int stem = stem_of(launcher);
  ::kill(stem, SIGSTOP);
  constexpr const char* kSetup =
      R"({"env":{},"entrypoint":[],"cwd":"/workspace","uid":1000,"gid":1000,"home":"/home/user","keep_caps":false})";
  for (int i = 0; i < 3; ++i) launcher.send_with_setup(launcher.request(random_id_text()), kSetup);
  launcher.hello();  // all three are with the stem
  kill_stem(stem);
  auto next = random_id_text();
  launcher.send_with_setup(launcher.request(next), kSetup);
  int lost = 0, made = 0;
  for (int i = 0; i < 4; ++i) {
    auto reply = launcher.create_reply();
    lost += reply.failed == Step::clone;
    made += reply.failed == Step::none;
  }
  EXPECT_EQ(lost, 3);
  EXPECT_EQ(made, 1);
  EXPECT_THAT(launcher.run(next, "hostname"), testing::HasSubstr("sbx-" + next.substr(0, 8)));
  EXPECT_EQ(launcher.ask(wire::Op::destroy, next), 0);
  EXPECT_TRUE(eventually([&] { return traces_of(launcher.instance()) == before; }));
}

TEST(CreateSteps, ManyDivisionsRenewTheStem) {
  NEED(kernel_test::need_root());
  LaunchHarness launcher({"--pool", "4"});
  for (int i = 0; i < 300; ++i) {
    auto id = random_id_text();
    ASSERT_EQ(launcher.create(launcher.request(id)).failed, Step::none) << i;
    ASSERT_EQ(launcher.ask(wire::Op::destroy, id), 0);
    ASSERT_TRUE(launcher.wait_exited());
  }
}

TEST(CreateSteps, AForeignGroupOfTheSameNameStopsTheCreateAndStays) {
  NEED(kernel_test::need_root());
  LaunchHarness launcher;
  auto first = random_id_text();
  auto made = launcher.create(launcher.request(first));
  ASSERT_EQ(made.failed, Step::none);
  auto next = (made.id_base - launch::kFirstHostId) / launch::kRangeStride + 1;
  std::string foreign;
  for (const auto* top : {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"}) {
    std::string parent = cat(top, "/opensandbox-", launcher.instance());
    if (std::filesystem::is_directory(parent)) foreign = cat(parent, "/berth-", next);
  }
  ASSERT_FALSE(foreign.empty());
  std::filesystem::create_directory(foreign);
  auto reply = launcher.create(launcher.request(random_id_text()));
  EXPECT_EQ(reply.failed, Step::cgroup);
  EXPECT_EQ(reply.sys, EEXIST);
  EXPECT_TRUE(std::filesystem::is_directory(foreign));
  std::filesystem::remove(foreign);
}

}  // namespace
}  // namespace osb::test
