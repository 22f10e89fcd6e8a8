#include "cli/terminal.h"

#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstdlib>

#include "base/text.h"
#include "cli/sanitise.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

bool colour_forbidden = false;

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

std::string_view sequence(Colour colour) {
  switch (colour) {
    case Colour::green: return "\033[32m";
    case Colour::yellow: return "\033[33m";
    case Colour::red: return "\033[31m";
    case Colour::bold: return "\033[1m";
    case Colour::dim: return "\033[2m";
  }
  return {};
}

void say(std::string_view label, Colour colour, std::string_view text) {
  // A message may hold several lines of ours; each is a line of its own, none can be forged from outside.
  std::string out;
  for (auto line : split(text, '\n')) {
    if (line.empty()) continue;
    if (!label.empty()) out += cat(paint(colour, label, STDERR_FILENO), " ");
    out += sanitise(line);
    out += '\n';
  }
  write_all(STDERR_FILENO, out);
}

void append_pretty(std::string& out, const json::value& value, std::size_t depth) {
  auto line = [&](std::size_t level) {
    out += '\n';
    out.append(level * 2, ' ');
  };
  if (value.is_object() && !value.get_object().empty()) {
    out += '{';
    bool first = true;
    for (const auto& [key, member] : value.get_object()) {
      if (!std::exchange(first, false)) out += ',';
      line(depth + 1);
      append_json_string(out, key);
      out += ": ";
      append_pretty(out, member, depth + 1);
    }
    line(depth);
    out += '}';
  } else if (value.is_array() && !value.get_array().empty()) {
    out += '[';
    bool first = true;
    for (const auto& item : value.get_array()) {
      if (!std::exchange(first, false)) out += ',';
      line(depth + 1);
      append_pretty(out, item, depth + 1);
    }
    line(depth);
    out += ']';
  } else if (value.is_string()) {
    append_json_string(out, value.get_string());
  } else {
    out += json::serialize(value);
  }
}

}  // namespace

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    auto n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Result<> print(std::string_view data) {
  if (write_all(STDOUT_FILENO, data)) return Ok{};
  return Error::from_errno("write to stdout", errno);
}

void note(std::string_view message) { say({}, Colour::dim, message); }
void warn(std::string_view message) { say("warning:", Colour::yellow, message); }

void complain(const Error& error) {
  say("error:", Colour::red, error.what());
  if (!error.hint().empty()) say("hint:", Colour::bold, error.hint());
}

bool colours_on(int fd) {
  if (colour_forbidden || is_set("NO_COLOR")) return false;
  if (is_set("CLICOLOR_FORCE")) return true;
  const char* term = std::getenv("TERM");
  return term != nullptr && std::string_view(term) != "dumb" && ::isatty(fd) == 1;
}

void never_colour() { colour_forbidden = true; }

std::string paint(Colour colour, std::string_view text, int fd) {
  if (!colours_on(fd)) return std::string(text);
  return cat(sequence(colour), text, "\033[0m");
}

std::string pretty(const json::value& value) {
  std::string out;
  append_pretty(out, value, 0);
  out += '\n';
  return out;
}

}  // namespace osb::cli
