#include "lifecycle/measure.h"

#include <gtest/gtest.h>

#include "lifecycle/service_fixture.h"

namespace osb::lifecycle {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

runtime::Usage used(std::uint64_t cpu_nanos, std::uint64_t limit_millis = 1000) {
  runtime::Usage usage;
  usage.cpu_nanos = cpu_nanos;
  usage.cpu_limit_millis = limit_millis;
  return usage;
}

TEST(CpuPercent, TheFirstLookIsTheAverageSinceBirth) {
  CpuMark mark;
  EXPECT_DOUBLE_EQ(cpu_percent(mark, used(kSecond / 2), 10 * kSecond, 8 * kSecond), 25);
}

TEST(CpuPercent, ALaterLookIsTheDifferenceToTheOneBefore) {
  CpuMark mark;
  cpu_percent(mark, used(kSecond / 2), 10 * kSecond, 8 * kSecond);
  EXPECT_DOUBLE_EQ(cpu_percent(mark, used(kSecond), 11 * kSecond, 8 * kSecond), 50);
  EXPECT_DOUBLE_EQ(cpu_percent(mark, used(kSecond), 12 * kSecond, 8 * kSecond), 0);
}

TEST(CpuPercent, LooksThatFollowCloselyShareOneRate) {
  CpuMark mark;
  cpu_percent(mark, used(0), 10 * kSecond, 8 * kSecond);
  cpu_percent(mark, used(kSecond / 2), 11 * kSecond, 8 * kSecond);
  EXPECT_DOUBLE_EQ(cpu_percent(mark, used(kSecond), 11 * kSecond + 1000, 8 * kSecond), 50);
}

TEST(CpuPercent, IsOfTheLimitAndStaysBetween0And100) {
  CpuMark half;
  EXPECT_DOUBLE_EQ(cpu_percent(half, used(kSecond / 2, 500), kSecond, 0), 100);
  CpuMark over;
  EXPECT_DOUBLE_EQ(cpu_percent(over, used(9 * kSecond), kSecond, 0), 100);
  CpuMark backwards{kSecond, 500, 0};
  EXPECT_DOUBLE_EQ(cpu_percent(backwards, used(100), 2 * kSecond, 0), 0);
  CpuMark nothing;
  EXPECT_DOUBLE_EQ(cpu_percent(nothing, used(0, 0), kSecond, kSecond), 0);
}

TEST(MeasureOf, FilePagesThatCanGoAreNotUsed) {
  runtime::Usage usage;
  usage.memory_bytes = 100;
  usage.memory_reclaimable_bytes = 30;
  usage.memory_limit_bytes = 1000;
  EXPECT_EQ(measure_of(usage, {}).memory_used_bytes, 70u);
  usage.memory_reclaimable_bytes = 200;
  EXPECT_EQ(measure_of(usage, {}).memory_used_bytes, 0u);
}

TEST(MeasureOf, LimitsNobodyToldAreThoseAskedFor) {
  Limits limits;
  auto measure = measure_of({}, limits);
  EXPECT_EQ(measure.usage.memory_limit_bytes, limits.memory_bytes);
  EXPECT_EQ(measure.usage.cpu_limit_millis, limits.cpu_millis);
  EXPECT_EQ(measure.usage.pids_limit, limits.pids);
  EXPECT_EQ(measure.usage.disk_limit_bytes, limits.disk_bytes);
}

}  // namespace
}  // namespace osb::lifecycle
