#include "confine/processes.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace osb::confine {
namespace {

TEST(Processes, OfANamespaceAreFoundAndOthersAreLeftOut) {
  auto ours = pid_namespace_of(::getpid());
  ASSERT_TRUE(ours.starts_with("pid:[")) << ours;
  auto found = processes_in({"pid:[1]", ours});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].empty());
  auto self = std::ranges::find(found[1], ::getpid(), &ProcessUse::pid);
  ASSERT_NE(self, found[1].end());
  EXPECT_GE(self->tasks, 1u);
  EXPECT_GT(self->resident_bytes, 0u);
}

TEST(Processes, NobodyIsInANamespaceThatIsNotKnown) {
  EXPECT_EQ(pid_namespace_of(-1), "");
  auto found = processes_in({""});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].empty());
}

// A child with 32 MiB in shared memory that nobody else has.
class Hog {
 public:
  Hog() {
    int ready[2];
    if (::pipe(ready) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      std::memset(memory, 1, kBytes);
      [[maybe_unused]] auto told = ::write(ready[1], "r", 1);
      ::pause();
      ::_exit(0);
    }
    ::close(ready[1]);
    char byte = 0;
    [[maybe_unused]] auto heard = ::read(ready[0], &byte, 1);
    ::close(ready[0]);
  }
  Hog(const Hog&) = delete;
  Hog& operator=(const Hog&) = delete;
  ~Hog() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  static constexpr std::size_t kBytes = 32 << 20;
  pid_t pid_ = -1;
};

TEST(Processes, MemoryThatAProcessSharesIsItsOwnWhereNobodyElseHasIt) {
  Hog hog;
  ASSERT_GT(hog.pid_, 0);
  EXPECT_GE(own_bytes_of(hog.pid_), Hog::kBytes);
  EXPECT_TRUE(has_children(::getpid()));
  EXPECT_FALSE(has_children(hog.pid_));
}

}  // namespace
}  // namespace osb::confine
