// From what a kernel publishes to events of the protocol.
//
// Every value is text, no text is empty, and no event is longer than the 4 MiB that the published clients can read in
// one line: output is cut into pieces, what cannot be cut is left out and named.
#pragma once
#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "async/task.h"
#include "base/result.h"

namespace osb::execd {

// Where the events of one run of code go.
class CodeEvents {
 public:
  virtual ~CodeEvents() = default;
  // `members`: "\"type\":\"stdout\",...", a JSON object without its braces, time and number.
  virtual void add(std::string members) = 0;
  // The last event.
  virtual void finish(std::string members) = 0;
  // Waits while whoever listens is far behind.
  virtual Task<void> room() = 0;
};

inline constexpr std::size_t kPieceBytes = 32 * 1024;            // of stdout and stderr in one event
inline constexpr std::size_t kMaxResultBytes = 3 * 1024 * 1024;  // of one result, escaped

// The length of a beginning of `text` of at most `limit` bytes that does not end within a character.
std::size_t whole_characters(std::string_view text, std::size_t limit);

std::string output_members(std::string_view type, std::string_view text);  // type: "stdout" or "stderr"
std::string count_members(std::int64_t execution_count);
// A MIME bundle: "text" and "text/plain" both, everything else as text under its own name.
std::string result_members(const boost::json::object& bundle);
std::string error_members(std::string_view name, std::string_view value, const boost::json::object& content);

}  // namespace osb::execd
