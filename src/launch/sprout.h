// A first process that is there before its sandbox is asked for: divided from the stem for a berth, in the berth's groups and network, with
// /proc and writable layer of a sandbox of one size and policy. It has run nothing, and waits for the rest of its plan (enter/enter.h).
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "base/fd.h"
#include "enter/plan.h"
#include "launch/program_copies.h"

namespace osb::launch {

// What a sprout is made for: it becomes a sandbox of this size and policy, with a root that a berth can hold and a store in memory.
struct SproutKind {
  std::string shape;  // empty: none
  Policy policy;
  Limits limits;

  bool operator==(const SproutKind&) const = default;
};

// Owns the process: whoever lets go of one that was not used ends it.
class Sprout {
 public:
  Sprout() = default;
  // `epoll`, which may know the pidfd, is told before that is closed: helpers hold copies that would keep the registration alive.
  Sprout(SproutKind kind, std::int32_t pid, Fd pidfd, ProgramCopy program, Fd socket, int epoll)
      : kind_(std::move(kind)),
        pid_(pid),
        pidfd_(std::move(pidfd)),
        program_(std::move(program)),
        socket_(std::move(socket)),
        epoll_(epoll) {}
  Sprout(Sprout&&) = default;
  Sprout& operator=(Sprout&& other) noexcept;
  ~Sprout() { end(); }

  explicit operator bool() const { return static_cast<bool>(pidfd_); }
  bool has_died() const;
  bool serves(const SproutKind& kind) const { return pidfd_ && !kind.shape.empty() && kind_ == kind; }

  struct Used {
    std::int32_t pid = 0;
    Fd pidfd;
    ProgramCopy program;
  };
  // The plan is on its way, and the process is the caller's; no pidfd: it is dead, and has been reaped.
  Used use(enter::EnterPlan plan);
  void end();  // waits until it is dead, a moment at most

 private:
  SproutKind kind_;
  std::int32_t pid_ = 0;
  Fd pidfd_;
  ProgramCopy program_;
  Fd socket_;  // it ends when this does
  int epoll_ = -1;
};

}  // namespace osb::launch
