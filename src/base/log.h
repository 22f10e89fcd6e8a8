// Structured log: one JSON object a line on stderr (or a descriptor chosen at start).
//
//   log::warn("launcher lost", {{"socket", path}, {"error", error.what()}});
//
// Every value is escaped to plain ASCII, so bytes from a sandbox can neither forge a line nor move a cursor.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/text.h"

namespace osb::log {

enum class Level { debug, info, warn, error };

struct Field {
  std::string_view name;
  std::string value;
  Field(std::string_view n, std::string_view v) : name(n), value(v) {}
  Field(std::string_view n, const char* v) : name(n), value(v) {}
  Field(std::string_view n, const std::string& v) : name(n), value(v) {}
  template <std::integral N>
  Field(std::string_view n, N v) : name(n), value(cat(v)) {}
};
using Fields = std::initializer_list<Field>;

void set_level(Level lowest);
void set_output(int fd);  // not owned
void write(Level level, std::string_view message, Fields fields);

inline void debug(std::string_view m, Fields f = {}) { write(Level::debug, m, f); }
inline void info(std::string_view m, Fields f = {}) { write(Level::info, m, f); }
inline void warn(std::string_view m, Fields f = {}) { write(Level::warn, m, f); }
inline void error(std::string_view m, Fields f = {}) { write(Level::error, m, f); }

}  // namespace osb::log
