#include "base/clock.h"

#include <time.h>

#include "base/civil_time.h"
#include "base/text.h"

namespace osb {
namespace {

std::int64_t nanos_of(clockid_t clock) {
  timespec ts{};
  ::clock_gettime(clock, &ts);
  return ts.tv_sec * 1'000'000'000LL + ts.tv_nsec;
}

// Days since 1970-01-01 of a proleptic Gregorian date.
std::int64_t days_from_civil(int y, int m, int d) {
  y -= m <= 2;
  const int era = y / 400;
  const int yoe = y - era * 400;
  const int doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  const int doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
  return era * 146097LL + doe - 719468;
}

int days_in_month(int y, int m) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
  return m == 2 && leap ? 29 : kDays[m - 1];
}

// Takes exactly `count` digits off the front.
std::optional<int> take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || lower(text.front()) != lower(c)) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::int64_t> take_fraction_micros(std::string_view& text) {
  std::int64_t micros = 0;
  int digits = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    if (digits < 6) micros = micros * 10 + (text.front() - '0');
    ++digits;
    text.remove_prefix(1);
  }
  if (digits == 0) return std::nullopt;
  for (int i = digits; i < 6; ++i) micros *= 10;
  return micros;
}

std::optional<std::int64_t> take_offset_seconds(std::string_view& text) {
  if (text.empty() || take(text, 'Z')) return 0;
  int sign = text.front() == '-' ? -1 : 1;
  if (!take(text, '+') && !take(text, '-')) return std::nullopt;
  auto hours = take_digits(text, 2);
  take(text, ':');
  auto minutes = take_digits(text, 2);
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  return sign * (*hours * 3600LL + *minutes * 60);
}

// The last `count` decimal digits of `value`.
void put_digits(std::string& out, std::size_t at, std::size_t count, std::int64_t value) {
  for (auto end = at + count; end-- > at; value /= 10) out[end] = static_cast<char>('0' + value % 10);
}

}  // namespace

WallTime wall_now() { return {nanos_of(CLOCK_REALTIME) / 1000}; }
std::int64_t wall_now_millis() { return nanos_of(CLOCK_REALTIME) / 1'000'000; }
std::int64_t boot_now_nanos() { return nanos_of(CLOCK_BOOTTIME); }

// Every answer and every audit line has several of these: printf takes ten times as long.
std::string format_rfc3339(WallTime t) {
  auto at = civil_time(t.micros / 1'000'000);
  std::string out = "0000-00-00T00:00:00.000000Z";
  put_digits(out, 0, 4, at.year);
  put_digits(out, 5, 2, at.month);
  put_digits(out, 8, 2, at.day);
  put_digits(out, 11, 2, at.hour);
  put_digits(out, 14, 2, at.minute);
  put_digits(out, 17, 2, at.second);
  put_digits(out, 20, 6, t.micros % 1'000'000);
  return out;
}

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  auto year = take_digits(text, 4);
  bool ok = take(text, '-');
  auto month = take_digits(text, 2);
  ok = ok && take(text, '-');
  auto day = take_digits(text, 2);
  ok = ok && (take(text, 'T') || take(text, ' '));
  auto hour = take_digits(text, 2);
  ok = ok && take(text, ':');
  auto minute = take_digits(text, 2);
  ok = ok && take(text, ':');
  auto second = take_digits(text, 2);
  if (!ok || !year || !month || !day || !hour || !minute || !second) return std::nullopt;
  if (*year < 1970 || *month < 1 || *month > 12 || *day < 1 || *day > days_in_month(*year, *month)) return std::nullopt;
  if (*hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  std::int64_t micros = 0;
  if (take(text, '.')) {
    auto fraction = take_fraction_micros(text);
    if (!fraction) return std::nullopt;
    micros = *fraction;
  }
  auto offset = take_offset_seconds(text);
  if (!offset || !text.empty()) return std::nullopt;
  std::int64_t seconds = days_from_civil(*year, *month, *day) * 86400 + *hour * 3600LL + *minute * 60 + *second - *offset;
  return WallTime{seconds * 1'000'000 + micros};
}

}  // namespace osb
