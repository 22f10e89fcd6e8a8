// What becomes of a new process before it is a sandbox of the `process` runtime, decided by the keeper as one value.
//
// Most of it is enter::EnterPlan, whose steps that need no root are used as they are. What differs is here.
#pragma once
#include "enter/plan.h"

namespace osb::confine {

struct Plan {
  // Of it are used: host, policy, limits, hostname, machine_id, layer_paths (one), filter, listener, setup, report, and `started`,
  // which is the program to go on with, and `oom_counter`, a file of the keeper's that execd reads (memory.cc).
  enter::EnterPlan base;
  std::string workspace;  // directory of the host that is /workspace; "" = one of memory that goes with the sandbox
  int workspace_fd = -1;  // the same, opened by the keeper: the path must still lead there
  int go = -1;            // one byte comes when the ids are mapped; its end means that the keeper is dead
};

// The inner id of the one user that the namespace maps, execd and programs alike.
inline constexpr std::uint32_t kInnerId = enter::kPayloadId;

}  // namespace osb::confine
