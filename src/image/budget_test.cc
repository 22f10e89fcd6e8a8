#include "image/budget.h"

#include <gtest/gtest.h>

namespace osb::image {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

TEST(Budget, ChargesUpToItsLimitsAndNoFurther) {
  Budget budget({.max_bytes = 100, .max_entries = 2}, -1);
  EXPECT_TRUE(budget.charge_bytes(100));
  EXPECT_EQ(budget.charge_bytes(1).error().kind(), Errc::too_large);
  EXPECT_EQ(budget.charge_bytes(~0ull).error().kind(), Errc::too_large);
  EXPECT_TRUE(budget.charge_bytes(0));
  EXPECT_TRUE(budget.charge_entry());
  EXPECT_TRUE(budget.charge_entry());
  EXPECT_EQ(budget.charge_entry().error().kind(), Errc::too_large);
}

TEST(Budget, ZeroIsNothingAndTheLargestNumberIsNotEndless) {
  Budget none({.max_bytes = 0, .max_entries = 0}, -1);
  EXPECT_FALSE(none.charge_bytes(1));
  EXPECT_FALSE(none.charge_entry());
  Budget vast({.max_bytes = ~0ull, .max_entries = ~0ull}, -1);
  EXPECT_TRUE(vast.charge_stream(1));
  EXPECT_FALSE(vast.charge_bytes(~0ull));
  EXPECT_FALSE(vast.charge_stream(~0ull));
}

TEST(Budget, ABombIsToldByItsRatioOnceItIsLarge) {
  Budget budget({}, -1);
  EXPECT_TRUE(budget.check_ratio(1, 64 * kMiB));
  EXPECT_TRUE(budget.check_ratio(kMiB, 199 * kMiB));
  EXPECT_EQ(budget.check_ratio(kMiB, 200 * kMiB).error().kind(), Errc::too_large);
  EXPECT_FALSE(budget.check_ratio(0, 65 * kMiB));
}

TEST(Budget, TheHostKeepsItsReserveOfTheDisk) {
  sys::fs::Space roomy{.total_bytes = 100'000 * kMiB, .free_bytes = 6'000 * kMiB, .total_inodes = 1000, .free_inodes = 60};
  EXPECT_TRUE(check_reserve(roomy));
  sys::fs::Space full = roomy;
  full.free_bytes = 4'000 * kMiB;
  EXPECT_EQ(check_reserve(full).error().kind(), Errc::exhausted);
  sys::fs::Space crowded = roomy;
  crowded.free_inodes = 40;
  EXPECT_EQ(check_reserve(crowded).error().kind(), Errc::exhausted);
  EXPECT_TRUE(check_reserve(sys::fs::Space{}));
}

}  // namespace
}  // namespace osb::image
