// Sandboxes made ahead of time: closed until claimed, and like any other afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <fstream>
#include <iterator>

#include "base/clock.h"
#include "tests/kernel/host_traces.h"
#include "tests/kernel/kernel_test.h"
#include "tests/kernel/launch_harness.h"

namespace osb::test {
namespace {

using testing::HasSubstr;
using wire::Step;

class Spare : public testing::Test {
 protected:
  void SetUp() override { NEED(kernel_test::need_root()); }

  std::string prepare() {
    auto id = random_id_text();
    auto reply = launcher_.prepare(launcher_.request(id));
    EXPECT_EQ(reply.failed, Step::none) << wire::name_of(reply.failed) << ": " << reply.detail;
    pid_ = reply.pid;
    return id;
  }

  static wire::ClaimRequest claim_of(const std::string& id) {
    wire::ClaimRequest request;
    id.copy(request.id.text, sizeof request.id.text);
    request.head.seq = 8;
    request.answer_at_once = 1;
    return request;
  }

  static std::string setup(const std::string& env, const std::string& entrypoint = "") {
    return cat("{\"env\":{", env, "},\"entrypoint\":[", entrypoint,
               "],\"cwd\":\"/workspace\",\"uid\":1000,\"gid\":1000,\"home\":\"/home/user\",\"keep_caps\":false}");
  }

  // Processes in the sandbox's own pid namespace; execd alone makes one.
  std::uint64_t processes(const std::string& id) { return launcher_.usage(id).pids; }

  // Dead, whether or not somebody has buried it.
  static bool ended(int pid) {
    std::ifstream status(cat("/proc/", pid, "/status"));
    std::string text{std::istreambuf_iterator<char>(status), {}};
    return text.empty() || text.find("State:\tZ") != std::string::npos || text.find("State:\tX") != std::string::npos;
  }

  LaunchHarness launcher_;
  int pid_ = 0;
};

TEST_F(Spare, GetsItsEnvironmentAndUserWhenItIsClaimed) {
  auto id = prepare();
  EXPECT_EQ(processes(id), 1u);
  auto reply = launcher_.claim(claim_of(id), setup("\"WHO\":\"first\""));
  EXPECT_EQ(reply.failed, Step::none) << reply.detail;
  EXPECT_EQ(reply.pid, pid_);
  auto inside = launcher_.run(id, "echo $WHO $(id -u); grep -E '^(CapEff|Seccomp:)' /proc/self/status");
  EXPECT_THAT(inside, HasSubstr("\"text\":\"first 1000\""));
  EXPECT_THAT(inside, HasSubstr("CapEff:\\t0000000000000000"));
  EXPECT_THAT(inside, HasSubstr("Seccomp:\\t2"));
}

TEST_F(Spare, IsClaimedOnce) {
  auto id = prepare();
  EXPECT_EQ(launcher_.claim(claim_of(id), setup("")).failed, Step::none);
  auto again = launcher_.claim(claim_of(id), setup(""));
  EXPECT_EQ(again.failed, Step::validate);
  EXPECT_EQ(again.sys, EBUSY);
  EXPECT_EQ(launcher_.claim(claim_of(random_id_text()), setup("")).sys, ENOENT);
  EXPECT_THAT(launcher_.run(id, "echo still here"), HasSubstr("still here"));
}

TEST_F(Spare, StartsTheFirstProgramOfWhoClaimsIt) {
  auto id = prepare();
  auto request = claim_of(id);
  request.answer_at_once = 0;
  EXPECT_EQ(launcher_.claim(request, setup("", "\"sleep\",\"1000\"")).failed, Step::none);
  EXPECT_EQ(processes(id), 2u);
}

TEST_F(Spare, EndsWithAClaimWhoseFirstProgramCannotStart) {
  auto before = traces_of(launcher_.instance());
  auto id = prepare();
  auto request = claim_of(id);
  request.answer_at_once = 0;
  auto reply = launcher_.claim(request, setup("", "\"/no/such/program\""));
  EXPECT_EQ(reply.failed, Step::entrypoint);
  EXPECT_EQ(reply.sys, ENOENT);
  EXPECT_TRUE(eventually([&] { return traces_of(launcher_.instance()) == before; }));
}

TEST_F(Spare, KeepsTheDeadlineOfItsClaim) {
  auto id = prepare();
  auto request = claim_of(id);
  request.deadline_boot_nanos = static_cast<std::uint64_t>(boot_now_nanos()) + 200'000'000;
  EXPECT_EQ(launcher_.claim(request, setup("")).failed, Step::none);
  auto ended = launcher_.wait_exited();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->cause, wire::Cause::expired);
}

TEST_F(Spare, ThatNobodyCanClaimAnyMoreEndsByItself) {
  auto spare = prepare();
  int spare_pid = pid_;
  auto claimed = prepare();
  EXPECT_EQ(launcher_.claim(claim_of(claimed), setup("")).failed, Step::none);
  launcher_.kill_launcher();
  EXPECT_TRUE(eventually([&] { return ended(spare_pid); }));
  EXPECT_FALSE(ended(pid_));  // control: a claimed one lives on
  launcher_.start();
  EXPECT_TRUE(eventually([&] { return launcher_.ask(wire::Op::thaw, spare) == ENOENT; }));
  EXPECT_THAT(launcher_.run(claimed, "echo alive"), HasSubstr("alive"));
}

TEST_F(Spare, TakesNoClaimForAnotherUserThanItWasMadeFor) {
  auto id = prepare();
  auto request = claim_of(id);
  request.answer_at_once = 0;
  auto reply = launcher_.claim(request, R"({"env":{},"entrypoint":[],"cwd":"/workspace","uid":0,"gid":0,"home":"/root","keep_caps":true})");
  EXPECT_EQ(reply.failed, Step::entrypoint);
  EXPECT_EQ(reply.sys, EINVAL);
  EXPECT_TRUE(eventually([&] { return launcher_.list().count == 0; }));
}

TEST_F(Spare, AnswersNobodyBeforeItIsClaimed) {
  auto id = prepare();
  Fd early(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto path = launcher_.socket_path(id);
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::connect(early.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  std::string ask = "GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  ASSERT_EQ(::write(early.get(), ask.data(), ask.size()), static_cast<ssize_t>(ask.size()));
  pollfd answer{early.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&answer, 1, 100), 0);
  EXPECT_EQ(launcher_.claim(claim_of(id), setup("")).failed, Step::none);
  EXPECT_EQ(::poll(&answer, 1, 10'000), 1);  // control: then it does
}

TEST_F(Spare, OfAClientThatHasGoneIsEndedAndNotListedAsASandbox) {
  auto before = traces_of(launcher_.instance());
  auto spare = prepare();
  Fd maker = launcher_.reconnect();
  EXPECT_EQ(launcher_.hello().live, 0u);
  ASSERT_EQ(launcher_.list().count, 1u);
  EXPECT_EQ(launcher_.list().entries[0].spare, 1);
  EXPECT_EQ(launcher_.claim(claim_of(spare), setup("")).sys, EBUSY);  // another's
  EXPECT_FALSE(ended(pid_));
  maker.reset();
  EXPECT_TRUE(eventually([&] { return launcher_.list().count == 0; }));
  EXPECT_TRUE(eventually([&] { return traces_of(launcher_.instance()) == before; }));
}

}  // namespace
}  // namespace osb::test
