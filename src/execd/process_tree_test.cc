#include "execd/process_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace osb::execd {
namespace {

// A process that carries `tag` and waits to be killed.
pid_t start_tagged(rlim_t tag) {
  pid_t pid = ::fork();
  if (pid == 0)
    for (;;) ::pause();
  rlimit limit{tag, tag};
  EXPECT_EQ(::prlimit(pid, RLIMIT_LOCKS, &limit, nullptr), 0);
  return pid;
}

TEST(Tags, AreHandedOutOnceALap) {
  Tags tags(1, 1000);
  for (std::uint64_t i = 1; i < 1000; ++i) ASSERT_EQ(tags.next(), i);
}

TEST(Tags, AreNotReusedWhileSomebodyCarriesThem) {
  // Numbers that no other execd on this machine hands out.
  constexpr std::uint64_t kFirst = 777'000'001;
  pid_t pid = start_tagged(kFirst + 2);
  Tags tags(kFirst, kFirst + 4);
  // Two laps: the first knows nothing of who lives, the second has looked.
  for (unsigned wanted : {0u, 1u, 2u, 3u}) EXPECT_EQ(tags.next(), kFirst + wanted);
  for (unsigned wanted : {0u, 1u, 3u, 0u, 1u, 3u}) EXPECT_EQ(tags.next(), kFirst + wanted);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  for (unsigned wanted : {0u, 1u, 2u, 3u}) EXPECT_EQ(tags.next(), kFirst + wanted);
}

TEST(Tags, AreNoneWhereThereIsNoRoom) { EXPECT_EQ(Tags(1, 1).next(), 0u); }

TEST(KillTree, TakesCarriersOfTheTagAndNobodyElse) {
  pid_t mine = start_tagged(777'001);
  pid_t other = start_tagged(777'002);
  EXPECT_EQ(kill_tree({.leader = 0x7fffffff, .tag = 777'001}), 1u);
  int status = 0;
  ASSERT_EQ(::waitpid(mine, &status, 0), mine);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(::waitpid(other, &status, WNOHANG), 0) << "the other one lives";
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
}

}  // namespace
}  // namespace osb::execd
