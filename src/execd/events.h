// The event stream of runs: one JSON object on one line of plain ASCII, then an empty line. No "data:" prefix.
//
// Every event but a ping carries its number in the run (runs/run.h), so that a client can read on from the last it has.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "execd/exit_status.h"

namespace osb::execd::events {

// `text`: what clients take for the execution's id; `run_id`: what the run is found by.
void append_init(std::string& out, std::uint64_t seq, std::string_view text, std::string_view run_id);
void append_ping(std::string& out);
void append_output(std::string& out, std::uint64_t seq, std::string_view type, std::string_view text);  // "stdout" or "stderr"
// The bytes as they are: "text" where they are UTF-8, else "base64".
void append_raw_output(std::string& out, std::uint64_t seq, std::string_view type, std::string_view bytes);
void append_complete(std::string& out, std::uint64_t seq, std::int64_t execution_millis);
void append_error(std::string& out, std::uint64_t seq, const ExitStatus& status, std::int64_t execution_millis);
// A command that never ran: `reason` stands where the exit code would.
void append_start_error(std::string& out, std::uint64_t seq, std::string_view reason, Cause cause);
// Not part of the run: its reader is told that `missed` events are no longer kept.
void append_truncated(std::string& out, std::uint64_t missed);

}  // namespace osb::execd::events
