// The way into a sandbox: what the new process does between clone3 and execd, as one ordered list of steps.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "launch/cgroups.h"
#include "launch/host.h"
#include "model/launch_wire.h"

namespace osb::launch {

inline constexpr std::size_t kMaxVolumes = 16;

struct PlannedVolume {
  std::string mount_path;
  std::string sub_path;     // inside a named volume
  int tree = -1;            // a volume of the host: a detached mount
  int socket = -1;          // a named volume: its mount comes from here
  int user_namespace = -1;  // whose map its owners go through
  bool read_only = false;
};

// Everything is decided here, before the process exists; enter() only carries it out.
struct EnterPlan {
  const Host* host = nullptr;
  Policy policy;
  Limits limits;
  std::uint32_t first_id = 0;            // host id of inner id 0
  std::string hostname;                  // sbx-xxxxxxxx
  std::string machine_id;                // 32 hex
  std::vector<std::string> layer_paths;  // topmost first, scaffold not included
  std::size_t snapshot_layers = 0;       // so many of them, from the top, are snapshots
  bool host_view = false;
  std::vector<PlannedVolume> volumes;
  int disk_socket = -1;  // a disk-backed writable layer comes from here; -1 = it is made of memory
  std::string shape;     // relative to the work directory
  const Group* cgroup = nullptr;
  int user_namespace = -1;
  int network_namespace = -1;
  int listener = -1;
  int setup = -1;
  int report = -1;
  wire::Step fail_at = wire::Step::none;  // fault injection: this step fails with ECANCELED
  wire::Step die_at = wire::Step::none;   // fault injection: the process kills itself before this step
};

// Inner ids. The agent is execd; the payload user is who commands run as unless the sandbox is in root mode.
inline constexpr std::uint32_t kPayloadId = 1000;
inline constexpr std::uint32_t kAgentId = 65533;

// Never returns: becomes execd, or reports the failed step on plan.report and exits with 125.
[[noreturn]] void enter(const EnterPlan& plan);

}  // namespace osb::launch
