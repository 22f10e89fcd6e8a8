// What becomes of a new process before it is a sandbox, decided by the launcher as one value. enter() only carries it out.
//
// The value travels as one message with descriptors (plan_message.h): the process that carries it out is not the launcher's copy.
#pragma once
#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/launch_wire.h"
#include "model/limits.h"
#include "model/policy.h"

namespace osb::enter {

inline constexpr std::size_t kMaxVolumes = 16;

struct PlannedVolume {
  std::string mount_path;
  std::string sub_path;     // inside a named volume
  int tree = -1;            // a volume of the host: a detached mount
  int socket = -1;          // a named volume: its mount comes from here
  int user_namespace = -1;  // whose map its owners go through
  bool read_only = false;
};

// A directory of the host that the `host` image shows, e.g. /usr at "usr".
struct HostDirectory {
  std::string path;
  std::string name;
};

// What is the same for every sandbox of a launcher.
struct HostFacts {
  std::string work_dir;
  std::string scaffold_path;
  std::vector<HostDirectory> directories;
  std::vector<std::string> proc_masks, proc_dir_masks;
  int landlock_abi = 0;
  int last_capability = 0;
  int dev_null = -1;
};

struct EnterPlan {
  HostFacts host;
  Policy policy;
  Limits limits;
  std::uint32_t first_id = 0;            // host id of inner id 0
  std::string hostname;                  // sbx-xxxxxxxx
  std::string machine_id;                // 32 hex
  std::vector<std::string> layer_paths;  // topmost first, scaffold not included
  std::size_t snapshot_layers = 0;       // so many of them, from the top, are snapshots
  bool host_view = false;
  std::vector<PlannedVolume> volumes;
  std::string shape;                // relative to the work directory
  std::vector<sock_filter> filter;  // of the policy's profile
  int root = -1;                    // a tree to take a copy of, with all that is not the sandbox's own; -1 = it is made here
  int disk_socket = -1;             // a disk-backed writable layer comes from here; -1 = it is made of memory
  int cgroup = -1;                  // the v2 group, to be cloned into
  std::vector<int> cgroup_tasks;    // v1
  int oom_counter = -1;
  int user_namespace = -1;
  int network_namespace = -1;
  int listener = -1;
  int setup = -1;
  int report = -1;
  int started = -1;                       // closed when the last wall stands; -1 = nobody asks
  int rest = -1;                          // a sprout: its request is not there yet, and the whole plan comes from here; -1 = this is it
  wire::Step fail_at = wire::Step::none;  // fault injection: this step fails with ECANCELED
  wire::Step die_at = wire::Step::none;   // fault injection: the process kills itself before this step
};

// Inner ids. The agent is execd; the payload user is who commands run as unless the sandbox is in root mode.
inline constexpr std::uint32_t kPayloadId = 1000;
inline constexpr std::uint32_t kAgentId = 65533;

}  // namespace osb::enter
