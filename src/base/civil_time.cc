#include "base/civil_time.h"

namespace osb {
namespace {

constexpr std::int64_t kDay = 86400;
constexpr std::int64_t kDaysIn400Years = 146097;
constexpr std::int64_t kEpochFromMarchOfYear0 = 719468;

std::int64_t floor_div(std::int64_t value, std::int64_t by) { return value / by - (value % by < 0 ? 1 : 0); }

}  // namespace

// Years are counted from March, so that the day that leap years add is the last of its year.
CivilTime civil_time(std::int64_t seconds) {
  std::int64_t days = floor_div(seconds, kDay);
  auto of_day = static_cast<int>(seconds - days * kDay);
  std::int64_t since_march = days + kEpochFromMarchOfYear0;
  std::int64_t era = floor_div(since_march, kDaysIn400Years);
  std::int64_t day_of_era = since_march - era * kDaysIn400Years;
  std::int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  auto day_of_year = static_cast<int>(day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100));
  int month_from_march = (5 * day_of_year + 2) / 153;
  CivilTime out;
  out.day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
  out.month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  out.year = era * 400 + year_of_era + (out.month <= 2 ? 1 : 0);
  out.hour = of_day / 3600;
  out.minute = of_day / 60 % 60;
  out.second = of_day % 60;
  out.weekday = static_cast<int>(((days + 4) % 7 + 7) % 7);
  return out;
}

}  // namespace osb
