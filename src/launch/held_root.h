// The part of a root that is the same for every sandbox of a berth: image, host directories, devices, terminals, /sys, name service files.
//
// It is built once as a tree of mounts that lies nowhere, and each sandbox takes a copy of the whole tree with one call, instead of
// making two file systems and a dozen mounts. Only where nothing of it can be written: what a sandbox leaves in a read-only overlay is
// a few names in the kernel's caches, and those are charged to the berth, which is not used again when they grow (berths.h).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "enter/plan.h"

namespace osb::launch {

struct HeldRoot {
  Fd tree;
  std::vector<std::string> layers;
  bool host_view = false;
  std::string shape;
  std::uint64_t made_at = 0;  // boot time, nanoseconds

  // Whether it is what `plan` asks for. One that shows directories of the host is believed for a few seconds only: an overlay does not see
  // a file that was replaced below it, and the host's packages do change.
  bool serves(const enter::EnterPlan& plan, std::uint64_t now) const;
  bool is_stale(std::uint64_t now) const;  // nobody should wait for it any longer
};

// Linux 6.15 and later copy trees that lie nowhere.
bool kernel_copies_loose_trees();
// Nothing that the sandbox may write, and nothing that is put between its layers.
bool can_be_held(const enter::EnterPlan& plan);
// `work`: the launcher's work directory. The user namespace is the plan's.
Result<HeldRoot> build_held_root(const enter::EnterPlan& plan, int work, std::uint64_t now);

}  // namespace osb::launch
