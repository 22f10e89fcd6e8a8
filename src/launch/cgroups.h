// Cgroups of one host: which hierarchies there are, and the set of groups that holds one sandbox.
//
// Limits live where the host has its controllers (v2, or v1 hierarchies); kill and freeze always go through the
// v2 hierarchy, because a task frozen by the v1 freezer survives SIGKILL. Every limit is written before the first
// process is placed. Device access is decided once, on a group that all sandboxes share.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "model/limits.h"

namespace osb::launch {

struct CgroupUsage {
  std::uint64_t cpu_nanos = 0;
  std::uint64_t cpu_throttled_nanos = 0;
  std::uint64_t cpu_limit_millis = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_peak_bytes = 0;
  std::uint64_t memory_limit_bytes = 0;
  std::uint64_t memory_reclaimable_bytes = 0;  // file pages nobody used lately
  std::uint64_t pids = 0;
  std::uint64_t pids_limit = 0;
  std::uint64_t oom_kills = 0;
};

// One set of groups, with the files that every sandbox needs held open: one that comes and goes then walks no path.
// A new process puts itself there: it writes "0" to each v1 `tasks` file (this skips the kernel's global wait that
// `cgroup.procs` costs), or is cloned into the v2 group.
struct Group {
  std::string name;
  Fd v2;                               // directory, for CLONE_INTO_CGROUP
  std::vector<Fd> tasks;               // v1, opened for writing
  Fd oom_counter;                      // has a line "oom_kill N"
  Fd cpu_stat;                         // of the v2 group
  Fd throttled;                        // v1: cpu.stat of the cpu hierarchy
  Fd memory;                           // bytes in use
  Fd memory_peak;                      // writing to it begins a new peak; on v2 for this descriptor alone
  Fd pids;                             // processes inside
  std::optional<Limits> limits;        // as last written
  std::uint64_t cpu_nanos_before = 0;  // used by sandboxes that had this group earlier
};

class Cgroups {
 public:
  // Finds the hierarchies, makes our parent group `opensandbox-<instance>` in each, sets up devices.
  // `private_v2_mount` is a directory of ours where cgroup2 is mounted when the host has it nowhere.
  static Result<Cgroups> open(const std::string& instance, const std::string& private_v2_mount);

  bool controllers_on_v2() const { return on_v2_; }

  // On v1 the launcher itself lives under the device rules, so that every sandbox inherits them without a call of its own.
  Result<> join_device_rules();
  Result<> leave_device_rules();  // for a helper that needs a loop device, and before the groups are removed

  Result<Group> make(const std::string& name);         // fails, and leaves nothing, if one of the groups exists already
  Result<Group> open(const std::string& name);         // one that exists
  Result<> limit(Group& group, const Limits& limits);  // before any process is inside
  bool populated(const Group& group);                  // also when that cannot be told
  // Ready for another sandbox? Only if nothing is left that the next one would be charged for or could learn from.
  bool renew(Group& group);

  // By name, for groups whose descriptors are not at hand, too.
  Result<> kill(std::string_view name);                 // SIGKILL to every process, now and in forks under way
  void hasten_death(std::string_view name);             // no new pids, no throttling: a throttled group dies slowly
  Result<> freeze(std::string_view name, bool frozen);  // asks; frozen() tells when it is done
  bool frozen(std::string_view name);
  Result<> remove(std::string_view name);  // EBUSY error while a process is left
  // Adds up what all groups have used so far. The kernel keeps those with unsettled sums in a list that it walks for each one that is
  // asked: among thousands, somebody has to ask for all now and then.
  void settle_usage();
  CgroupUsage usage(const Group& group);
  CgroupUsage final_usage(const Group& group);            // only what is worth telling of a sandbox that has ended
  std::vector<std::int32_t> pids(std::string_view name);  // as this process sees them
  Result<std::vector<std::string>> names();               // groups that exist in any hierarchy
  Result<> remove_parents();                              // when nothing is left of this instance

 private:
  struct Hierarchy {
    std::string controller;  // "memory", "cpu", "pids", "blkio" on v1; "" on v2
    Fd root;                 // the mount's top, for the parent's life
    Fd parent;               // opensandbox-<instance>
  };
  Result<> open_v1(const std::vector<std::pair<std::string, std::string>>& mounts);
  Result<> open_v2();
  Result<> make_directories(const std::string& name);
  Result<> open_files(Group& group);
  Result<> limit_v1(std::string_view name, const Limits& limits);
  Result<> limit_v2(std::string_view name, const Limits& limits);
  void read_v1(const Group& group, CgroupUsage& usage);
  void read_v2(const Group& group, CgroupUsage& usage);
  std::optional<std::uint64_t> cpu_nanos(const Group& group) const;
  std::optional<std::uint64_t> throttled_nanos(const Group& group) const;
  Hierarchy* find(std::string_view controller);
  static std::string text_of(const Hierarchy& hierarchy, std::string_view name, const char* file);  // empty when it cannot be read

  std::string name_;
  bool on_v2_ = false;
  Hierarchy v2_;
  std::vector<Hierarchy> v1_;
  Fd devices_tasks_;  // v1: the shared device group
  Fd devices_root_;
  std::string io_device_;  // "254:0": the block device below the state directory, empty when there is none
};

}  // namespace osb::launch
