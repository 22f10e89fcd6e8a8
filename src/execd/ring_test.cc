#include "execd/ring.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace osb::execd {
namespace {

class Budget : public RingBudget {
 public:
  explicit Budget(std::size_t limit) : limit_(limit) {}
  bool take(std::size_t bytes, const void*) override {
    if (used + bytes > limit_) return false;
    used += bytes;
    return true;
  }
  void give(std::size_t bytes) override { used -= bytes; }
  std::size_t used = 0;

 private:
  std::size_t limit_;
};

TEST(Ring, ReadsFromAnyOffsetItStillHas) {
  Ring ring(1024, nullptr);
  ring.append("one\ntwo\n");
  EXPECT_EQ(ring.read_from(0), "one\ntwo\n");
  EXPECT_EQ(ring.read_from(4), "two\n");
  EXPECT_EQ(ring.read_from(8), "");
  EXPECT_EQ(ring.read_from(99), "") << "an offset of the future is not an error";
  ring.append("three\n");
  EXPECT_EQ(ring.read_from(8), "three\n");
  EXPECT_EQ(ring.end(), 14u);
}

TEST(Ring, SaysHowMuchIsGone) {
  Ring ring(8, nullptr);
  ring.append("0123456789");
  EXPECT_EQ(ring.begin(), 2u);
  EXPECT_EQ(ring.read_from(0), "[truncated 2 bytes]\n23456789");
  EXPECT_EQ(ring.read_from(1), "[truncated 1 bytes]\n23456789");
  EXPECT_EQ(ring.read_from(2), "23456789");
  EXPECT_EQ(ring.read_from(7), "789");
}

// Every prefix of a long text, written in pieces of every size, against a plain string.
TEST(Ring, AgreesWithAPlainStringForAllPieceSizes) {
  for (std::size_t limit : {std::size_t{1}, std::size_t{7}, std::size_t{5000}}) {
    for (std::size_t step : {std::size_t{1}, std::size_t{3}, std::size_t{4096}, std::size_t{9000}}) {
      Ring ring(limit, nullptr);
      std::string all;
      for (int i = 0; i < 10; ++i) {
        std::string piece(step, static_cast<char>('a' + i));
        ring.append(piece);
        all += piece;
        std::size_t kept = std::min(limit, all.size());
        ASSERT_EQ(ring.end(), all.size());
        ASSERT_EQ(ring.begin(), all.size() - kept);
        ASSERT_EQ(ring.read_from(ring.begin()), all.substr(all.size() - kept));
      }
      EXPECT_LE(ring.memory(), std::max(limit, Ring::kSmallest));
    }
  }
}

TEST(Ring, GrowsOnlyAsFarAsTheBudgetAllows) {
  Budget budget(64 * 1024);
  Ring ring(1024 * 1024, &budget);
  std::string block(10'000, 'x');
  for (int i = 0; i < 100; ++i) ring.append(block);
  EXPECT_LE(ring.memory(), 64u * 1024);
  EXPECT_GE(ring.memory(), 32u * 1024);
  EXPECT_EQ(budget.used, ring.memory());
  EXPECT_EQ(ring.end(), 1'000'000u);
}

TEST(Ring, GetsItsSmallestSizeFromAnEmptyBudget) {
  Budget budget(0);
  Ring ring(1024 * 1024, &budget);
  ring.append(std::string(9000, 'y'));
  EXPECT_EQ(ring.memory(), Ring::kSmallest);
  EXPECT_EQ(ring.read_from(ring.begin()).size(), Ring::kSmallest);
  EXPECT_EQ(budget.used, 0u);
}

TEST(Ring, GivesEverythingBack) {
  Budget budget(1 << 20);
  {
    Ring ring(1 << 20, &budget);
    ring.append(std::string(100'000, 'z'));
    EXPECT_GT(budget.used, 0u);
    ring.release();
    EXPECT_EQ(budget.used, 0u);
    EXPECT_EQ(ring.read_from(0), "[truncated 100000 bytes]\n");
    ring.append("more");
    EXPECT_EQ(ring.read_from(100'000), "more");
  }
  EXPECT_EQ(budget.used, 0u);
}

}  // namespace
}  // namespace osb::execd
