#include "launch/program_copies.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <vector>

namespace osb::launch {
namespace {

constexpr std::string_view kText = "#!not really a program\n";

ino_t file_of(const ProgramCopy& copy) {
  struct stat info{};
  EXPECT_EQ(::fstat(copy->get(), &info), 0);
  return info.st_ino;
}

class Copies : public testing::Test {
 protected:
  void SetUp() override {
    program_ = Fd(::memfd_create("program", MFD_CLOEXEC));
    ASSERT_EQ(::pwrite(program_.get(), kText.data(), kText.size(), 0), static_cast<ssize_t>(kText.size()));
  }
  ProgramCopy take() {
    auto copy = copies_.take();
    EXPECT_TRUE(copy);
    return copy ? *copy : nullptr;
  }
  // As many as it takes until a stem would look for another copy.
  static std::vector<ProgramCopy> crowd(const ProgramCopy& copy) {
    std::vector<ProgramCopy> users;
    while (!ProgramCopies::is_crowded(copy)) users.push_back(copy);
    return users;
  }

  Fd program_;
  ProgramCopies copies_{program_};
};

TEST_F(Copies, AreTheProgramAndSealed) {
  auto copy = take();
  char text[64] = {};
  ASSERT_EQ(::pread(copy->get(), text, sizeof text, 0), static_cast<ssize_t>(kText.size()));
  EXPECT_EQ(std::string_view(text), kText);
  EXPECT_EQ(::fcntl(copy->get(), F_GET_SEALS), F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

TEST_F(Copies, AreSharedByAFew) {
  auto first = take();
  EXPECT_EQ(file_of(take()), file_of(first));
}

TEST_F(Copies, AreSharedByNoCrowd) {
  auto first = take();
  auto users = crowd(first);
  auto second = take();
  EXPECT_NE(file_of(second), file_of(first));
  EXPECT_FALSE(ProgramCopies::is_crowded(second));
}

TEST_F(Copies, ServeAgainWhenTheCrowdIsGone) {
  auto first = take();
  auto users = crowd(first);
  auto second = take();
  auto others = crowd(second);
  users.clear();
  EXPECT_EQ(file_of(take()), file_of(first));
}

TEST_F(Copies, EndWithTheirLastUser) {
  auto first = take();
  auto users = crowd(first);
  std::weak_ptr<const Fd> second = take();
  EXPECT_TRUE(second.expired());
}

TEST_F(Copies, AreSharedByMoreWhereNoneCanBeMade) {
  auto first = take();
  auto users = crowd(first);
  program_.reset();
  EXPECT_EQ(file_of(take()), file_of(first));
}

TEST_F(Copies, AreNotThereWhenThereNeverWasOne) {
  program_.reset();
  EXPECT_FALSE(copies_.take());
}

}  // namespace
}  // namespace osb::launch
