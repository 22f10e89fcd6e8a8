#include "base/civil_time.h"

#include <gtest/gtest.h>
#include <time.h>

namespace osb {
namespace {

TEST(CivilTimeTest, AgreesWithTheCLibraryOnEveryDayOfEightCenturiesAndAroundTheEpoch) {
  for (std::int64_t day = -146097; day <= 146097; ++day) {
    for (std::int64_t second : {0LL, 45296LL, 86399LL}) {
      time_t seconds = day * 86400 + second;
      tm parts{};
      ::gmtime_r(&seconds, &parts);
      auto civil = civil_time(seconds);
      ASSERT_EQ(civil.year, parts.tm_year + 1900) << seconds;
      ASSERT_EQ(civil.month, parts.tm_mon + 1) << seconds;
      ASSERT_EQ(civil.day, parts.tm_mday) << seconds;
      ASSERT_EQ(civil.weekday, parts.tm_wday) << seconds;
      ASSERT_EQ(civil.hour * 3600 + civil.minute * 60 + civil.second, second) << seconds;
    }
  }
}

}  // namespace
}  // namespace osb
