#include "base/log.h"

#include <unistd.h>

#include <atomic>

#include "base/clock.h"

namespace osb::log {
namespace {

std::atomic<Level> lowest_level{Level::info};
std::atomic<int> output_fd{STDERR_FILENO};

constexpr std::string_view name_of(Level level) {
  switch (level) {
    case Level::debug: return "debug";
    case Level::info: return "info";
    case Level::warn: return "warn";
    case Level::error: return "error";
  }
  return "?";
}

}  // namespace

void set_level(Level lowest) { lowest_level = lowest; }
void set_output(int fd) { output_fd = fd; }

void write(Level level, std::string_view message, Fields fields) {
  if (level < lowest_level.load()) return;
  std::string line = cat("{\"time\":\"", format_rfc3339(wall_now()), "\",\"level\":\"", name_of(level), "\",\"msg\":");
  append_json_string(line, message);
  for (const Field& field : fields) {
    line += ',';
    append_json_string(line, field.name);
    line += ':';
    append_json_string(line, field.value);
  }
  line += "}\n";
  // One write per line keeps lines whole between processes; a full or closed log never stops the work.
  [[maybe_unused]] auto n = ::write(output_fd.load(), line.data(), line.size());
}

}  // namespace osb::log
