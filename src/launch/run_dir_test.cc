#include "launch/run_dir.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "sys/fs_walk.h"
#include "sys/kernel_file.h"

namespace osb::launch {
namespace {

class RunDir : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/osb-run-dir-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    path_ = name;
  }
  void TearDown() override { remove_run_dir(path_); }
  void write(const std::string& name) const { ASSERT_TRUE(sys::write_new_file(AT_FDCWD, (path_ + name).c_str(), "x", 0600)); }

  std::string path_;
};

TEST_F(RunDir, IsRemovedWithFilesAndDirectoriesOneLevelDown) {
  write("/ledger");
  ASSERT_EQ(::mkdir((path_ + "/sandboxes").c_str(), 0700), 0);
  write("/sandboxes/a.sock");
  remove_run_dir(path_);
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
}

// A run directory that is not of our making is not emptied.
TEST_F(RunDir, StaysWhereDirectoriesAreDeeper) {
  ASSERT_EQ(::mkdir((path_ + "/a").c_str(), 0700), 0);
  ASSERT_EQ(::mkdir((path_ + "/a/b").c_str(), 0700), 0);
  write("/a/b/theirs");
  remove_run_dir(path_);
  EXPECT_EQ(::access((path_ + "/a/b/theirs").c_str(), F_OK), 0);
  ::unlink((path_ + "/a/b/theirs").c_str());
  ::rmdir((path_ + "/a/b").c_str());
}

TEST_F(RunDir, HasOneHolderUntilItsLockIsClosed) {
  auto lock = lock_run_dir(path_, "launcher");
  ASSERT_TRUE(lock);
  Fd other(::open((path_ + "/lock").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_NE(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
  auto refused = lock_run_dir(path_, "launcher", std::chrono::milliseconds(20));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), Errc::conflict);
  EXPECT_EQ(refused.error().what(), "another launcher runs this instance");
  lock->reset();
  EXPECT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
}

TEST_F(RunDir, IsWaitedForWhileItsHolderEnds) {
  auto ending = lock_run_dir(path_, "launcher");
  ASSERT_TRUE(ending);
  std::thread holder([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ending->reset();
  });
  auto next = lock_run_dir(path_, "launcher");
  holder.join();
  ASSERT_TRUE(next) << next.error().what();
  EXPECT_TRUE(is_held(path_, *next));
}

// A holder that takes the directory along leaves whoever waits with a lock on nothing.
TEST_F(RunDir, ThatItsHolderRemovedIsMadeAgainForWhoeverWaits) {
  auto ending = lock_run_dir(path_, "launcher");
  ASSERT_TRUE(ending);
  std::thread holder([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    remove_run_dir(path_);
    EXPECT_FALSE(is_held(path_, *ending));
    ending->reset();
  });
  auto next = lock_run_dir(path_, "launcher");
  holder.join();
  ASSERT_TRUE(next) << next.error().what();
  EXPECT_TRUE(is_held(path_, *next));
}

TEST_F(RunDir, IsNotHeldByTheLockOfOneThatWasRemovedAndMadeAnew) {
  auto first = lock_run_dir(path_, "launcher");
  ASSERT_TRUE(first);
  EXPECT_TRUE(is_held(path_, *first));
  remove_run_dir(path_);
  auto second = lock_run_dir(path_, "launcher");
  ASSERT_TRUE(second);
  EXPECT_FALSE(is_held(path_, *first));
  EXPECT_TRUE(is_held(path_, *second));
}

TEST_F(RunDir, IsPrivateOnceItIsMarkedAndMayBeMarkedAgain) {
  EXPECT_FALSE(is_private(path_));
  ASSERT_TRUE(mark_private(path_));
  ASSERT_TRUE(mark_private(path_));
  EXPECT_TRUE(is_private(path_));
}

}  // namespace
}  // namespace osb::launch
