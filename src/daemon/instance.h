// One instance: its directories, and the lock that keeps a second daemon out of them.
#pragma once
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "daemon/config.h"

namespace osb::daemon {

class Instance {
 public:
  // Makes the run directory of the instance and the state directory (0700) and locks both until this object dies;
  // serve.pid in the run directory names the holder. Errc::conflict when a daemon runs there already.
  // A private instance takes only directories that are empty or absent, or its own from before.
  static Result<Instance> open(const Config& config, bool is_private);

  const std::string& run_dir() const { return run_dir_; }
  const std::string& state_dir() const { return state_dir_; }
  // Images and disks. Private instances below <dir>/private share those of <dir>: what was imported once can be run there.
  std::string data_dir() const;
  std::string api_socket() const { return run_dir_ + "/api.sock"; }
  std::string grpc_socket() const { return run_dir_ + "/grpc.sock"; }  // where opensandbox-grpc passes calls on

  // Only for a private instance: removes both directories and everything in them.
  Result<> remove();

 private:
  Instance() = default;
  std::string run_dir_;
  std::string state_dir_;
  bool private_ = false;
  Fd run_lock_;
  Fd state_lock_;
};

}  // namespace osb::daemon
