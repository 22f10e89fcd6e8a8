// printf into a string; at most a line's worth.
#pragma once
#include <cstdarg>
#include <cstdio>
#include <string>

namespace bench {

__attribute__((format(printf, 1, 2))) inline std::string print(const char* format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return text;
}

}  // namespace bench
