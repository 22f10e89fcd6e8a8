// Starts `serve` in a process of its own and learns when it is ready.
#pragma once
#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "cli/signals.h"
#include "cli/units.h"

namespace osb::cli {

// The program that has the daemon in it: beside us in a build folder, in libexec where we are installed.
Result<std::string> serve_program();
Result<std::string> program_beside(std::string_view name);

inline constexpr int kReadyFd = 3;  // where a `serve` started by us finds the write end

struct Child {
  pid_t pid = -1;
  Fd process;  // pidfd
  Fd ready;    // read end: one JSON line, {"ready":true,...} or {"ready":false,"error":..,"hint":..}
};

// `words` follow "opensandbox serve". A session of its own, stdin and stdout at /dev/null, stderr at `log_fd`
// (-1: /dev/null), no other descriptor than the ready pipe.
Result<Child> spawn_serve(const std::vector<std::string>& words, int log_fd);

// The ready line. A child that says no is an error with its own words; one that ends without a word is Errc::internal; a
// signal to us is Errc::unavailable with EINTR.
Result<boost::json::object> wait_ready(Child& child, Millis within, Signals* signals);

// True when the process ended in time.
bool wait_exit(int process, Millis within);

}  // namespace osb::cli
