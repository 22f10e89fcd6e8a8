// A moment as a date and a time of day in UTC. The C library's gmtime would bring its time zones, and the parser of their
// files, into static programs.
#pragma once
#include <cstdint>

namespace osb {

struct CivilTime {
  std::int64_t year = 1970;
  int month = 1;  // 1..12
  int day = 1;
  int hour = 0;
  int minute = 0;
  int second = 0;
  int weekday = 4;  // 0 = Sunday
};

CivilTime civil_time(std::int64_t seconds_since_epoch);

}  // namespace osb
