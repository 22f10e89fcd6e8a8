// Which bytes of a file a request wants: Range and If-Range of RFC 9110, and the head of the answer.
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/http.h"

namespace osb::execd::files {

struct Range {
  std::uint64_t first = 0;
  std::uint64_t length = 0;
  bool partial = false;
};

// Of several ranges the first is served. Another unit than bytes means the whole file; nullopt: no byte of the file is
// meant, or the text is no range (416).
std::optional<Range> parse_range(std::string_view header, std::uint64_t size);

std::string etag_of(const struct stat& info);
std::string http_date(std::int64_t seconds);  // "Sun, 06 Nov 1994 08:49:37 GMT"
// Whether If-Range still means this file; true without one.
bool still_the_same(const http::Headers& request, const struct stat& info);
// attachment; filename="..." with filename*= where the name is not plain ASCII. Holds no byte that could end the header.
std::string content_disposition(std::string_view name);

}  // namespace osb::execd::files
