// The daemon: wires the rooms, starts them in order, stops them in reverse.
#pragma once
#include <functional>

#include "base/result.h"
#include "daemon/config.h"

namespace osb::daemon {

// Where the ready line goes: one JSON object, {"ready":true,"socket":"<api.sock>","address":"127.0.0.1:8080"}, then the
// descriptor is closed. -1 = nobody waits.
struct ReadyFd {
  int fd = -1;
};

struct RunOptions {
  ReadyFd ready;
  // Stop destroys every sandbox and removes the instance's run directory and the state directory. No TCP listener.
  bool private_instance = false;
  // Called on SIGHUP. A configuration that does not load leaves the running one in force. Empty = SIGHUP is ignored.
  std::function<Result<Config>()> reload;
};

// Blocks until SIGTERM or SIGINT; sandboxes keep running unless the instance is private. A second signal quits at
// once with 128 + its number. The value is the exit status; an error means that the daemon never got ready.
Result<int> run_daemon(const Config& config, RunOptions options);
inline Result<int> run_daemon(const Config& config, ReadyFd ready) {
  RunOptions options;
  options.ready = ready;
  return run_daemon(config, std::move(options));
}

}  // namespace osb::daemon
