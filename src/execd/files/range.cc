#include "execd/files/range.h"

#include <stdio.h>

#include "base/civil_time.h"
#include "base/text.h"

namespace osb::execd::files {
namespace {

bool is_number(std::string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == text.npos; }

// A number past 2^64 is past the end of every file.
std::uint64_t number(std::string_view text) { return parse_int<std::uint64_t>(text).value_or(UINT64_MAX); }

}  // namespace

std::optional<Range> parse_range(std::string_view header, std::uint64_t size) {
  auto equals = header.find('=');
  if (header.empty() || (equals != header.npos && !iequals(trim(header.substr(0, equals)), "bytes"))) return Range{0, size, false};
  if (equals == header.npos) return std::nullopt;
  header.remove_prefix(equals + 1);
  std::string_view spec = trim(header.substr(0, header.find(',')));
  auto dash = spec.find('-');
  if (dash == spec.npos) return std::nullopt;
  std::string_view first = trim(spec.substr(0, dash));
  std::string_view last = trim(spec.substr(dash + 1));
  if (first.empty()) {
    if (!is_number(last) || number(last) == 0 || size == 0) return std::nullopt;
    auto length = std::min(number(last), size);
    return Range{size - length, length, true};
  }
  if (!is_number(first) || (!last.empty() && !is_number(last))) return std::nullopt;
  auto from = number(first);
  auto to = last.empty() ? UINT64_MAX : number(last);
  if (from >= size || to < from) return std::nullopt;
  return Range{from, std::min(to, size - 1) - from + 1, true};
}

std::string etag_of(const struct stat& info) {
  char text[80];
  auto modified =
      static_cast<unsigned long long>(info.st_mtim.tv_sec) * 1'000'000'000ULL + static_cast<unsigned long long>(info.st_mtim.tv_nsec);
  ::snprintf(text, sizeof text, "\"%llx-%llx-%llx\"", static_cast<unsigned long long>(info.st_ino), modified,
             static_cast<unsigned long long>(info.st_size));
  return text;
}

std::string http_date(std::int64_t seconds) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  auto at = civil_time(seconds);
  if (at.year < 0 || at.year > 9999) return "Thu, 01 Jan 1970 00:00:00 GMT";
  char text[64];
  ::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT", kDays[at.weekday], at.day, kMonths[at.month - 1],
             static_cast<int>(at.year), at.hour, at.minute, at.second);
  return text;
}

bool still_the_same(const http::Headers& request, const struct stat& info) {
  std::string_view condition = request.get("If-Range");
  return condition.empty() || condition == etag_of(info) || condition == http_date(info.st_mtim.tv_sec);
}

std::string content_disposition(std::string_view name) {
  std::string plain;
  bool exact = true;
  for (char c : name) {
    bool shown = c >= 0x20 && c < 0x7f;
    exact = exact && shown;
    if (c == '"' || c == '\\') plain += '\\';
    plain += shown ? c : '_';
  }
  std::string out = cat("attachment; filename=\"", plain, "\"");
  return exact ? out : cat(out, "; filename*=UTF-8''", http::percent_encode(name));
}

}  // namespace osb::execd::files
