// What is on this host and belongs to no sandbox.
//
// The launcher writes a ledger record before it makes the first host object of a sandbox and strikes it off after the last
// one is gone. So every object without a record is a leak, whatever the daemons remember. Groups belong to numbered berths, and a
// record names its berth by its id range; a living launcher may hold some in reserve, empty or with a first process that waits for its
// sandbox.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace osb::cli {

inline constexpr std::uint32_t kFirstSandboxUid = 0x40000000;
inline constexpr std::uint32_t kPastSandboxUids = 0x80000000;
inline constexpr std::uint32_t kUidsPerRange = 65537;  // one lies idle between two ranges

// The host as it is, gathered or made up by a test.
struct Snapshot {
  struct Instance {
    std::string name;
    bool is_private = false;
    bool is_alive = false;  // its serve or its launcher holds its lock
  };
  struct Record {
    std::string instance, id;
    std::optional<std::uint32_t> range;
  };
  struct Group {
    std::string hierarchy, instance, berth;  // berth "" = the group all sandboxes of the instance are in
    bool in_use = false;                     // a process is inside
  };
  struct Process {
    std::int32_t pid = 0;
    std::uint32_t uid = 0;
    std::string name, instance, berth;  // the last two by its cgroup; "" = in none of ours
    bool waits = false;                 // the launcher's child and still root's: no sandbox yet
  };
  struct Socket {
    std::string instance, id, path;
  };
  struct Block {
    std::string number, instance;  // a claim on 64 id ranges
  };
  struct Loop {
    std::string device, backing;
  };
  struct Disk {
    std::string id, path;
  };

  std::vector<Instance> instances;
  std::vector<Record> records;
  std::vector<Group> groups;
  std::vector<Process> processes;
  std::vector<Socket> sockets;
  std::vector<Block> blocks;
  std::vector<std::string> mounts;  // mount points of ours in the host's mount namespace
  std::vector<Loop> loops;
  std::vector<Disk> disks;
  std::vector<std::string> private_states;  // names below <state>/private
};

struct Leak {
  std::string kind;  // "cgroup", "process", ...
  std::string what;
  auto operator<=>(const Leak&) const = default;
};

// Pure: the comparison and nothing else. Sorted by kind, then by what.
std::vector<Leak> find_leaks(const Snapshot& host);

struct LeakPlaces {
  std::string run_root = "/run/opensandbox";
  std::string state_dir = "/var/lib/opensandbox";
};
Result<Snapshot> gather(const LeakPlaces& places);

}  // namespace osb::cli
