// A daemon for one `run`: started when no other is there, gone with everything it made when the run is over.
#pragma once
#include <string>

#include "base/result.h"
#include "cli/address.h"
#include "cli/signals.h"
#include "cli/spawn.h"

namespace osb::cli {

struct PrivateOptions {
  std::string runtime;    // "" = as the environment says
  std::string workspace;  // of the runtime process: a directory of the host; "" = one of memory
};

// Owns the process, its run directory and its state directory. When we are killed the kernel tells it (a parent-death
// signal), and it removes both by itself.
class PrivateDaemon {
 public:
  static Result<PrivateDaemon> start(Signals& signals, const PrivateOptions& options);
  PrivateDaemon(PrivateDaemon&&) noexcept = default;
  PrivateDaemon& operator=(PrivateDaemon&&) = delete;
  ~PrivateDaemon() { stop(); }

  const Address& address() const { return address_; }
  void stop() noexcept;  // idempotent

 private:
  PrivateDaemon(Child child, std::string instance);

  Child child_;
  Address address_;
  std::string instance_;
};

}  // namespace osb::cli
