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
  bool walled = false;      // native: this process came through room enter, which left it no privilege to shed
  Fd door;                  // made ahead of time: where the set-up of whoever claims the sandbox comes through
  Fd listener;              // native: made outside the sandbox
  std::uint16_t port = 0;   // TCP on all IPv4 addresses; 0 = none
  std::string socket_path;  // for tests and local use; empty = none
  Fd report;                // native: where "ready" or the failure goes
  Fd oom_counter;
};

// Descriptors 3..6 and the set-up text of a native sandbox, as launch leaves them. A sandbox made ahead of time has a channel
// in the set-up's place: the first text that comes through is what is known already, the second is the claim.
Result<Start> adopt_native();
// Waits for the next text. The end of the channel, an error here, means that nobody can claim the sandbox any more.
Result<std::string> next_setup(const Fd& door);
// Takes the environment and the working directory execd was started with.
Start start_elsewhere(std::vector<std::string> entrypoint, std::string access_token);

// What is the same for every sandbox: tables, limits of the heap, meaning of signals. The stem does it once for all the processes it
// divides into; run_daemon() does it where nobody has.
void prepare_daemon();
// Never returns: exits with the entrypoint's status, or 125 when execd itself cannot run.
[[noreturn]] void run_daemon(Start start);

}  // namespace osb::execd
