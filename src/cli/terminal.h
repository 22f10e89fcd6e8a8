// Where words go: data to stdout, messages to stderr, colour only where a person reads.
#pragma once
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb::cli {

// Retries short writes; false when the descriptor cannot take the bytes.
bool write_all(int fd, std::string_view bytes);

Result<> print(std::string_view data);  // stdout, as it is
void note(std::string_view message);    // stderr, one line, sanitised
void warn(std::string_view message);    // "warning: message"
void complain(const Error& error);      // "error: what" and, where there is one, "hint: fix"

enum class Colour { green, yellow, red, bold, dim };
// NO_COLOR, TERM=dumb and anything that is no terminal mean no; CLICOLOR_FORCE means yes.
bool colours_on(int fd);
void never_colour();  // --no-color
std::string paint(Colour colour, std::string_view text, int fd);

// Two spaces a level, plain ASCII, a newline at the end.
std::string pretty(const boost::json::value& value);

}  // namespace osb::cli
