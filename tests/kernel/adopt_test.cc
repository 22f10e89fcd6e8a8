// What a launcher finds of one before it: taken over when it is what the record says, ended when it is not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/text.h"
#include "launch/cgroups.h"
#include "launch/id_range.h"
#include "launch/ledger.h"
#include "tests/kernel/host_traces.h"
#include "tests/kernel/kernel_test.h"
#include "tests/kernel/launch_harness.h"

namespace osb::test {
namespace {

class Adoption : public testing::Test {
 protected:
  void SetUp() override {
    NEED(::geteuid() == 0 ? nullptr : "needs root");
    make_something();
    launcher_.kill_launcher();
  }
  void TearDown() override {
    if (stand_in_ > 0) ::kill(stand_in_, SIGKILL);
    while (stand_in_ > 0 && ::waitpid(stand_in_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  // The first process of a pid namespace with a map of its own, in the group that the record leads to.
  void leave_stand_in(std::uint32_t first_id) {
    auto groups = launch::Cgroups::open(launcher_.instance(), launcher_.run_dir() + "/cgroup2");
    ASSERT_TRUE(groups) << groups.error().what();
    auto group = groups->make(cat("berth-", range_));
    ASSERT_TRUE(group) << group.error().what();
    stand_in_ = static_cast<pid_t>(::syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    if (stand_in_ == 0) {
      for (;;) ::pause();
    }
    ASSERT_GT(stand_in_, 0);
    std::ofstream(cat("/proc/", stand_in_, "/uid_map")) << "0 " << first_id << " 65536\n";
    for (const auto& tasks : group->tasks) {
      auto text = cat(stand_in_);
      ASSERT_EQ(::write(tasks.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    Fd procs(::openat(group->v2.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC));
    auto text = cat(stand_in_);
    ASSERT_EQ(::write(procs.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    auto ledger = launch::Ledger::open(launcher_.run_dir() + "/ledger");
    ASSERT_TRUE(ledger);
    id_ = SandboxId::random().text();
    ASSERT_TRUE(ledger->write({.id = id_, .range = range_, .boot_id = launch::current_boot_id()}));
  }

  bool lives() { return ::waitpid(stand_in_, nullptr, WNOHANG) == 0; }
  std::string listed() {
    auto list = launcher_.list();
    return list.count == 1 ? std::string(list.entries[0].id.text) : cat(list.count, " sandboxes");
  }

  LaunchHarness launcher_;
  std::uint32_t range_ = 0;
  pid_t stand_in_ = 0;
  std::string id_;

 private:
  // So that there is a ledger and a block of ranges; it is gone before the launcher is.
  void make_something() {
    auto id = SandboxId::random().text();
    ASSERT_EQ(launcher_.create(launcher_.request(id)).failed, wire::Step::none);
    range_ = launch::Ledger::open(launcher_.run_dir() + "/ledger")->all().at(0).range;
    ASSERT_EQ(launcher_.ask(wire::Op::destroy, id), 0);
    ASSERT_TRUE(launcher_.wait_exited());
  }
};

TEST_F(Adoption, OfOneWithTheIdsOfItsRangeHappens) {
  leave_stand_in(launch::first_id_of(range_));
  launcher_.start();
  EXPECT_EQ(listed(), id_);
  EXPECT_TRUE(lives());
  EXPECT_EQ(launcher_.ask(wire::Op::destroy, id_), 0);
  EXPECT_TRUE(launcher_.wait_exited());
}

TEST_F(Adoption, OfOneWhoseIdsWereLaidOutDifferentlyIsItsEnd) {
  leave_stand_in(launch::first_id_of(range_) - launch::kIdsPerRange / 2);
  launcher_.start();
  EXPECT_FALSE(lives());
  stand_in_ = 0;
  EXPECT_TRUE(eventually([&] { return listed() == "0 sandboxes"; })) << listed();
  EXPECT_TRUE(eventually([&] { return cgroups_of(launcher_.instance()).empty(); }));
  EXPECT_TRUE(ledger_of(launcher_.run_dir()).empty());
}

}  // namespace
}  // namespace osb::test
