// Berths are used again only when the sandbox before left them as they were made. Each rule has its control: the same life without
// the one deed gives the berth back.
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

constexpr int kKept = 3;

class Berth : public testing::Test {
 protected:
  void SetUp() override { NEED(kernel_test::need_root()); }

  // The host id of the new sandbox's root: which berth it lies in.
  std::uint32_t make(std::string& id, const std::function<void(wire::CreateRequest&)>& change = {}) {
    id = random_id_text();
    auto request = launcher_.request(id);
    if (change) change(request);
    auto reply = launcher_.create(request);
    EXPECT_EQ(reply.failed, Step::none) << wire::name_of(reply.failed) << ": " << reply.detail;
    return reply.id_base;
  }
  void end(const std::string& id) {
    EXPECT_EQ(launcher_.ask(wire::Op::destroy, id), 0);
    EXPECT_TRUE(launcher_.wait_exited());
  }
  // Lives one life in a berth, then as many as it takes for the reserve to come round; true when the berth was seen again.
  bool comes_back_after(const std::function<void(const std::string&)>& deed, const std::function<void(wire::CreateRequest&)>& change = {}) {
    std::string id;
    auto berth = make(id, change);
    deed(id);
    end(id);
    for (int i = 0; i < 3 * kKept; ++i) {
      auto again = make(id);
      end(id);
      if (again == berth) return true;
    }
    return false;
  }
  void run(const std::string& id, const std::string& command, const std::string& expected) {
    EXPECT_THAT(launcher_.run(id, command), HasSubstr(expected));
  }

  LaunchHarness launcher_{{"--pool", std::to_string(kKept)}};
};

TEST_F(Berth, ComesBackAfterAnOrdinaryLife) {
  EXPECT_TRUE(comes_back_after([&](const std::string& id) { run(id, "echo hello > /tmp/f; cat /tmp/f", "hello"); }));
}

TEST_F(Berth, OfANetworkThatCarriedAPacketIsNotUsedAgain) {
  EXPECT_FALSE(comes_back_after([&](const std::string& id) { run(id, "bash -c 'echo x > /dev/udp/127.0.0.1/9; echo sent'", "sent"); }));
}

TEST_F(Berth, OfAProcessThatWasKilledForMemoryIsNotUsedAgain) {
  auto fill_memory = [&](const std::string& id) {
    launcher_.run(id, "head -c 200M /dev/zero > /tmp/much");
    EXPECT_GT(launcher_.usage(id).oom_kills, 0u);
  };
  EXPECT_FALSE(comes_back_after(fill_memory, [](wire::CreateRequest& request) { request.limits.memory_bytes = 64ull << 20; }));
}

TEST_F(Berth, OfASandboxThatWasPausedIsNotUsedAgain) {
  EXPECT_FALSE(comes_back_after([&](const std::string& id) {
    EXPECT_EQ(launcher_.ask(wire::Op::freeze, id), 0);
    EXPECT_EQ(launcher_.ask(wire::Op::thaw, id), 0);
  }));
}

TEST_F(Berth, OfRootModeIsNotUsedAgain) {
  EXPECT_FALSE(comes_back_after([](const std::string&) {}, [](wire::CreateRequest& request) { request.policy.user = UserMode::root; }));
}

TEST_F(Berth, OfThePermissiveProfileIsNotUsedAgain) {
  EXPECT_FALSE(comes_back_after([](const std::string&) {},
                                [](wire::CreateRequest& request) { request.policy.syscalls = SyscallProfile::permissive; }));
}

TEST_F(Berth, ShowsNothingOfWhoWasThereBefore) {
  std::string id;
  auto berth = make(id);
  launcher_.run(id, "echo secret > /tmp/a; echo secret > /workspace/a; echo secret > ~/a; echo secret > /dev/shm/a; sleep 100 & disown");
  auto before = launcher_.run(id, "cat /proc/sys/kernel/random/uuid /etc/machine-id /etc/hostname; ls /dev/mqueue");
  end(id);
  for (int i = 0; i < 3 * kKept; ++i) {
    auto again = make(id);
    if (again == berth) {
      auto after = launcher_.run(
          id, "ls -A /tmp /workspace ~ /dev/shm /run /dev/mqueue; ps ax | grep sleep | grep -v grep; ipcs; cat /proc/net/dev");
      EXPECT_THAT(after, Not(HasSubstr("secret")));
      EXPECT_THAT(after, Not(HasSubstr("sleep")));
      EXPECT_THAT(after, Not(HasSubstr("\"text\":\"a\"")));
      EXPECT_NE(launcher_.run(id, "cat /proc/sys/kernel/random/uuid /etc/machine-id /etc/hostname; ls /dev/mqueue"), before);
      auto usage = launcher_.usage(id);
      EXPECT_LT(usage.cpu_nanos, 2'000'000'000u);
      EXPECT_EQ(usage.oom_kills, 0u);
      return;
    }
    end(id);
  }
  FAIL() << "the berth did not come back";
}

TEST_F(Berth, HasTheLimitsOfWhoLiesInIt) {
  std::string id;
  std::set<std::string> seen;
  for (std::uint64_t megabytes : {100u, 200u, 300u, 100u, 200u, 300u, 100u, 200u, 300u}) {
    make(id, [&](wire::CreateRequest& request) { request.limits.memory_bytes = megabytes << 20; });
    EXPECT_EQ(launcher_.usage(id).memory_limit_bytes, megabytes << 20);
    end(id);
  }
}

TEST_F(Berth, CountsTheProcessorTimeOfEachLifeAlone) {
  std::string id;
  auto berth = make(id, [](wire::CreateRequest& request) { request.limits.cpu_millis = 16'000; });  // nothing throttles it
  launcher_.run(id, "for i in $(seq 300000); do :; done");
  auto before = launcher_.usage(id).cpu_nanos;
  EXPECT_GT(before, 100'000'000u);
  end(id);
  for (int i = 0; i < 3 * kKept; ++i) {
    auto again = make(id);
    auto used = launcher_.usage(id).cpu_nanos;
    if (again == berth) {
      EXPECT_LT(used, before / 2);
      launcher_.kill_launcher();
      launcher_.start();
      EXPECT_LT(launcher_.usage(id).cpu_nanos, before / 2);  // the ledger knows what was there before
      return;
    }
    end(id);
  }
  FAIL() << "the berth did not come back";
}

TEST_F(Berth, LeavesNoGroupWhenTheLauncherEnds) {
  std::string id;
  make(id);
  end(id);
  EXPECT_TRUE(eventually([&] { return !cgroups_of(launcher_.instance()).empty(); }));  // control: the reserve
  launcher_.disconnect();
  EXPECT_TRUE(launcher_.wait_exit());
  EXPECT_TRUE(cgroups_of(launcher_.instance()).empty());
}

// What a command wrote, without the frame of its events.
std::string texts_of(const std::string& events) {
  constexpr std::string_view kText = "\"stdout\",\"text\":\"";
  std::string texts;
  for (auto at = events.find(kText); at != std::string::npos; at = events.find(kText, at)) {
    at += kText.size();
    texts += events.substr(at, events.find("\",\"seq\"", at) - at) + "\n";
  }
  return texts;
}

// A root that is copied from the berth's must be, mount for mount, the one that is made from nothing.
TEST_F(Berth, GivesTheNextSandboxTheSameMountsAsOneMadeFromNothing) {
  constexpr const char* kTable =
      "cut -d' ' -f 4-6,7- /proc/self/mountinfo | sed -E 's/(master|shared):[0-9]+ //; s/,(lowerdir|gid|userxattr)[^ ]*//g' | sort";
  LaunchHarness without({"--pool", "0"});
  auto fresh_id = random_id_text();
  ASSERT_EQ(without.create(without.request(fresh_id)).failed, Step::none);
  auto fresh = texts_of(without.run(fresh_id, kTable));
  ASSERT_THAT(fresh, HasSubstr("/workspace"));

  std::string id;
  for (int life = 0; life < 3 * kKept; ++life) {
    make(id);
    EXPECT_EQ(texts_of(launcher_.run(id, kTable)), fresh) << "life " << life;
    end(id);
  }
}

TEST_F(Berth, ACopiedRootIsAsReadOnlyAsAFreshOne) {
  std::string id;
  for (int life = 0; life < 2 * kKept; ++life) {
    make(id);
    run(id, "for f in /x /usr/x /etc/x /etc/hosts /dev/x /sys/x; do (echo y > $f) 2>&1; done; echo y > /tmp/x && cat /tmp/x", "y");
    EXPECT_THAT(launcher_.run(id, "ls /x /usr/x /etc/x /dev/x 2>&1; grep -c y /etc/hosts"), Not(HasSubstr("\ny")));
    end(id);
  }
}

TEST_F(Berth, FindsNoTerminalOfTheSandboxBefore) {
  std::string id;
  for (int life = 0; life < 2 * kKept; ++life) {
    make(id);
    run(id, "python3 -c 'import os,pty; print(os.listdir(\"/dev/pts\")); print([os.ttyname(pty.openpty()[1]) for _ in range(3)][0])'",
        "/dev/pts/0");
    EXPECT_THAT(launcher_.run(id, "ls /dev/pts"), HasSubstr("\"text\":\"ptmx\""));
    end(id);
  }
}

// Groups of those who leave a crowd stay until it has thinned out; a newcomer's berth is used again all the same.
TEST_F(Berth, OfANewcomerComesBackBesideACrowdThatLeavesNothing) {
  constexpr int kCrowd = 260;
  auto& instance = launcher_.instance();
  std::vector<std::string> crowd(kCrowd);
  for (auto& id : crowd) make(id);
  EXPECT_TRUE(comes_back_after([&](const std::string& id) { run(id, "echo hello", "hello"); }));
  auto hierarchies = cgroups_of(instance).size() / kCrowd;
  for (const auto& id : crowd) end(id);
  EXPECT_TRUE(eventually([&] { return cgroups_of(instance).size() <= 100 * hierarchies; }, std::chrono::seconds(30)));
  EXPECT_TRUE(ledger_of(launcher_.run_dir()).empty());
}

}  // namespace
}  // namespace osb::test
