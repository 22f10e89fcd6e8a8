#include "cli/doctor/leaks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "cli/doctor/finding.h"
#include "model/ledger_record.h"

namespace osb::cli {
namespace {

const std::string kA(26, 'a'), kB(26, 'b');

std::string said(const std::vector<Leak>& leaks) {
  std::string out;
  for (const auto& leak : leaks) out += cat(leak.kind, ": ", leak.what, "\n");
  return out;
}

// One instance, one sandbox, everything of it on record.
Snapshot tidy() {
  Snapshot host;
  host.instances = {{"default", false, true}};
  host.records = {{"default", kA, 3}};
  host.groups = {{"/cg/memory", "default", ""}, {"/cg/memory", "default", "berth-3", true}};
  host.processes = {{100, kFirstSandboxUid + 3 * kUidsPerRange + 1000, "sh", "default", "berth-3"}};
  host.sockets = {{"default", kA, "/run/opensandbox/default/sandboxes/a.sock"}};
  host.blocks = {{"0", "default"}};
  host.loops = {{"/dev/loop0", "/var/lib/opensandbox/disks/#1 (deleted)"}};
  return host;
}

TEST(Leaks, AreNoneWhereEverythingIsOnRecord) { EXPECT_EQ(said(find_leaks(tidy())), ""); }

TEST(Leaks, EveryKindIsFoundOnceItsRecordIsGone) {
  auto host = tidy();
  host.records.clear();
  EXPECT_EQ(said(find_leaks(host)),
            cat("cgroup: /cg/memory/opensandbox-default/berth-3"
                "\nloop device: /dev/loop0 on /var/lib/opensandbox/disks/#1 (deleted)\n"
                "process: 100 sh (uid ",
                kFirstSandboxUid + 3 * kUidsPerRange + 1000, ")\nsocket: /run/opensandbox/default/sandboxes/a.sock\n"));
}

TEST(Leaks, AnInstanceThatIsGoneOwnsNothing) {
  auto host = tidy();
  host.instances.clear();
  host.records.clear();
  host.processes.clear();
  host.sockets.clear();
  host.loops.clear();
  EXPECT_EQ(said(find_leaks(host)), cat("cgroup: /cg/memory/opensandbox-default\ncgroup: /cg/memory/opensandbox-default/berth-3"
                                        "\nid ranges: block 0 of instance default\n"));
}

TEST(Leaks, EmptyBerthsAreTheReserveOfALivingLauncherOnly) {
  auto host = tidy();
  host.groups.push_back({"/cg/memory", "default", "berth-9", false});
  EXPECT_EQ(said(find_leaks(host)), "");
  host.groups.back().in_use = true;
  EXPECT_EQ(said(find_leaks(host)), "cgroup: /cg/memory/opensandbox-default/berth-9\n");
  host.groups.back().in_use = false;
  host.instances[0].is_alive = false;
  EXPECT_EQ(said(find_leaks(host)), "cgroup: /cg/memory/opensandbox-default/berth-9\n");
}

TEST(Leaks, ARecordOfAnotherInstanceDoesNotCount) {
  auto host = tidy();
  host.instances.push_back({"other", false, true});
  host.records[0].instance = "other";
  EXPECT_TRUE(said(find_leaks(host)).contains("cgroup: "));
}

TEST(Leaks, AFirstProcessThatWaitsInTheReserveOfALivingLauncherIsNone) {
  auto host = tidy();
  host.groups.push_back({"/cg/memory", "default", "berth-9", true});
  host.processes.push_back({200, 0, "execd", "default", "berth-9", true});
  EXPECT_EQ(said(find_leaks(host)), "");
  host.processes.push_back({201, 0, "another", "default", "berth-9", false});
  EXPECT_EQ(said(find_leaks(host)), "process: 201 another (uid 0)\n");
  host.processes.pop_back();
  host.instances[0].is_alive = false;
  EXPECT_NE(said(find_leaks(host)).find("process: 200 execd"), std::string::npos);
}

TEST(Leaks, AProcessOutsideItsGroupIsJudgedByItsId) {
  auto host = tidy();
  host.processes.push_back({101, kFirstSandboxUid + 3 * kUidsPerRange, "owned", "", ""});
  EXPECT_EQ(said(find_leaks(host)), "");
  host.processes.push_back({102, kFirstSandboxUid + 4 * kUidsPerRange, "stray", "", ""});
  EXPECT_EQ(said(find_leaks(host)), cat("process: 102 stray (uid ", kFirstSandboxUid + 4 * kUidsPerRange, ")\n"));
}

TEST(Leaks, ATornRecordKeepsStraysUndecided) {
  auto host = tidy();
  host.records.push_back({"default", kB, std::nullopt});
  host.processes.push_back({102, kFirstSandboxUid + 4 * kUidsPerRange, "perhaps", "", ""});
  EXPECT_EQ(said(find_leaks(host)), "");
}

TEST(Leaks, MountsDisksAndDeadPrivateInstancesAreNobodys) {
  auto host = tidy();
  host.mounts = {"/run/opensandbox/default/work"};
  host.disks = {{kA, "/d/a.img"}, {kB, "/d/b.img"}};
  host.instances.push_back({"private-run-1", true, false});
  host.instances.push_back({"private-run-2", true, true});
  host.private_states = {"private-run-2", "private-run-3"};
  EXPECT_EQ(said(find_leaks(host)),
            "disk: /d/b.img\nmount: /run/opensandbox/default/work\nprivate instance: private-run-1 (nobody runs it)\nprivate state: "
            "private-run-3\n");
}

TEST(LeaksGather, ReadsLedgersSocketsAndClaims) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  char top[] = "/tmp/osb-leaks-XXXXXX";
  ASSERT_NE(::mkdtemp(top), nullptr);
  namespace fs = std::filesystem;
  auto write = [&](const std::string& path, std::string_view text) {
    fs::create_directories(fs::path(cat(top, "/", path)).parent_path());
    std::ofstream(cat(top, "/", path)) << text;
  };
  write("run/one/ledger", std::string(kLedgerLine, ' ') + render_ledger_line({kA, 7, 0, "x"}));
  write(cat("run/one/sandboxes/", kA, ".sock"), "");
  write(cat("run/one/sandboxes/", kB, ".sock"), "");
  write("run/one/serve.pid", "1\n");
  write("run/two/private", "");
  write("run/ranges/0", "one");
  write("run/ranges/1", "gone");
  write("state/disks/empty-1-1", "");
  int lock = ::open(cat(top, "/run/one/serve.pid").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  auto host = gather({cat(top, "/run"), cat(top, "/state")});
  ASSERT_TRUE(host);
  host->groups.clear();  // whatever else runs on this machine is not this test's business
  host->processes.clear();
  EXPECT_EQ(said(find_leaks(*host)), cat("id ranges: block 1 of instance gone\nprivate instance: two (nobody runs it)\nsocket: ", top,
                                         "/run/one/sandboxes/", kB, ".sock\n"));
  ASSERT_FALSE(host->records.empty());
  EXPECT_EQ(host->records[0].range, 7u);
  ::close(lock);
  fs::remove_all(top);
}

TEST(Findings, OnlyARequiredPartThatIsMissingIsFatal) {
  EXPECT_TRUE(is_fatal({"p", "n", Verdict::missing, true, "m", "f"}));
  EXPECT_FALSE(is_fatal({"p", "n", Verdict::missing, false, "m", "f"}));
  EXPECT_FALSE(is_fatal({"p", "n", Verdict::weak, true, "m", "f"}));
  auto text = render_findings({{"P", "one", Verdict::ok, true, "fine", "unused"}, {"P", "two", Verdict::missing, true, "bad", "fix it"}});
  EXPECT_TRUE(text.contains("missing")) << text;
  EXPECT_TRUE(text.contains("fix: fix it")) << text;
  EXPECT_FALSE(text.contains("unused")) << text;
  EXPECT_TRUE(text.contains("1 required part is missing")) << text;
}

}  // namespace
}  // namespace osb::cli
