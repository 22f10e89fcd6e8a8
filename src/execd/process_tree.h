// Everything a program has started, however far it ran away: the set of processes to stop when it has to end.
//
// A process that leaves its session and whose parents are gone looks like nobody's child. Each program therefore
// starts with a tag that its descendants inherit and cannot raise again: the hard limit of RLIMIT_LOCKS, which Linux
// has not enforced since 2.4. When the last parent of a process is gone it becomes execd's child, and the tag tells whose
// it was. (Making each program the reaper of its own orphans would also keep the tree together,
// but programs that never wait would then collect zombies that pid 1 could have removed.)
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "base/fd.h"

namespace osb::execd {

struct TreeRoot {
  pid_t leader = 0;  // of its own process group, and of a session where it has one
  std::uint64_t tag = 0;
};

// Stops every process of the tree before the first is killed, so that none can start another meanwhile, then kills
// all. Looks again until nothing new is found, a bounded number of times. Returns how many were killed.
std::size_t kill_tree(const TreeRoot& root);

// Descriptors of those whose parent this leader of a group is, and who are in its group.
std::vector<Fd> children_in_group_of(pid_t leader);

// Hands out tags; a tag is not used again while a process that carries it lives.
class Tags {
 public:
  Tags();  // reads execd's own limit: tags lie below it
  Tags(std::uint64_t first, std::uint64_t limit) : first_(first), limit_(limit), last_(first - 1) {}
  std::uint64_t next();  // 0: none free

 private:
  void start_lap();

  std::uint64_t first_ = 1;
  std::uint64_t limit_ = 0;
  std::uint64_t last_ = 0;
  std::set<std::uint64_t> taken_;
};

}  // namespace osb::execd
