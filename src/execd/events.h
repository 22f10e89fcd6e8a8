// The event stream of commands: one JSON object on one line of plain ASCII, then an empty line. No "data:" prefix.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "execd/exit_status.h"

namespace osb::execd::events {

void append_init(std::string& out, std::string_view id);
void append_ping(std::string& out);
void append_output(std::string& out, std::string_view type, std::string_view text);  // type: "stdout" or "stderr"
void append_complete(std::string& out, std::int64_t execution_millis);
void append_error(std::string& out, const ExitStatus& status);
// A command that never ran: `reason` stands where the exit code would.
void append_start_error(std::string& out, std::string_view reason, Cause cause);

}  // namespace osb::execd::events
