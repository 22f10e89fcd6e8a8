// From execd to a running program: vfork, the ordered steps in the child, execve.
//
// The child shares execd's memory until it executes, so it allocates nothing, takes no lock and calls the kernel
// directly; execd's only thread stands still meanwhile. A step that fails is told to the parent through that memory.
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

#include "execd/accounts.h"
#include "execd/program.h"

namespace osb::execd {

enum class Capabilities : std::uint8_t {
  leave,      // as the kernel leaves them (outside a native sandbox)
  none,       // all sets empty
  root_mode,  // exactly the eight of a root-mode sandbox
};

struct ChildPlan {
  std::span<const Attempt> attempts;
  const Env* env = nullptr;
  const Env* base_env = nullptr;    // beneath env
  const char* cwd = "/";            // absolute
  bool cwd_may_be_missing = false;  // "/" instead: the image's default, not the caller's wish
  const Identity* who = nullptr;    // nullptr: stays who execd is
  Capabilities capabilities = Capabilities::leave;
  std::optional<rlimit> open_files;  // to give back; execd raises its own
  std::uint64_t tag = 0;             // see process_tree.h; 0 = none
  int in = -1;                       // become descriptors 0, 1, 2; all above 2; -1 = as execd's own
  int out = -1;
  int err = -1;
  bool keeps_session = false;  // a process group of its own is enough
  bool groupless = false;      // there are no supplementary groups to lose
  bool terminal = false;       // `in` is a terminal and becomes the controlling one
};

enum class ChildStep : std::uint8_t { none, fork, session, groups, gid, uid, capabilities, descriptors, terminal, cwd, exec };
const char* name_of(ChildStep step);

struct ChildStart {
  pid_t pid = -1;  // -1: nothing runs
  ChildStep failed = ChildStep::none;
  int sys = 0;
};

// Returns when the program runs, or says why it does not. A child that failed is a zombie for the reaper.
ChildStart start_child(const ChildPlan& plan);

}  // namespace osb::execd
