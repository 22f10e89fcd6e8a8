// The daemon: takes over as pid 1 of a sandbox (or beside an entrypoint elsewhere) and serves until it ends.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "execd/setup.h"

namespace osb::execd {

// What execd holds when it starts.
struct Start {
  Setup setup;
  Fd listener;              // native: made outside the sandbox
  std::uint16_t port = 0;   // TCP on all IPv4 addresses; 0 = none
  std::string socket_path;  // for tests and local use; empty = none
  Fd report;                // native: where "ready" or the failure goes
  Fd oom_counter;
};

// Descriptors 3..6 and the set-up text of a native sandbox, as launch leaves them.
Result<Start> adopt_native();
// Takes the environment and the working directory execd was started with.
Start start_elsewhere(std::vector<std::string> entrypoint, std::string access_token);

// Never returns: exits with the entrypoint's status, or 125 when execd itself cannot run.
[[noreturn]] void run_daemon(Start start);

}  // namespace osb::execd
