// Processes: starts programs, and hears of every end.
//
// execd is pid 1, or the reaper of its part of the tree: one waitid(2) loop collects programs and orphans alike. There
// is no second place that waits, hence no race for a status, and a pid stays valid for signals until that loop has
// removed it.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "async/task.h"
#include "base/fd.h"
#include "base/result.h"
#include "execd/child.h"
#include "execd/process.h"
#include "execd/process_tree.h"
#include "execd/pty/device.h"

namespace osb::execd {

struct StartRequest {
  std::vector<Attempt> attempts;
  Env env;
  const Env* base_env = nullptr;  // the sandbox's own, beneath `env`; outlives the request
  Variables variables() const { return {env, base_env}; }
  std::string cwd = "/";
  bool cwd_may_be_missing = false;
  std::optional<Identity> who;
  bool with_stdin = false;
  int input = -1;                      // becomes stdin, and the outputs go nowhere: a shell that is told where to write
  bool merge_output = false;           // stderr into the same pipe as stdout
  bool inherit_stdio = false;          // execd's own descriptors instead of pipes
  std::optional<WindowSize> terminal;  // one terminal instead of pipes: input(), out() and resize() are its
  bool tagged = true;                  // false: it tags what it starts itself, see new_tag()
  std::optional<std::chrono::milliseconds> timeout;
};

class Processes {
 public:
  // `oom_counter`: a kernel file with a line "oom_kill N", or nothing.
  Processes(Executor executor, bool native, bool keep_caps, Fd oom_counter);

  // The program runs when this returns. Errors: field "cwd" or "uid" = the caller's mistake; field "program" = it
  // cannot be executed (not_found, permission_denied); Errc::exhausted = no process to be had.
  Result<std::shared_ptr<Process>> start(const StartRequest& request);
  // Removes what has ended; true when there may be more (the caller lets others run first).
  bool reap();
  std::size_t running() const { return running_.size(); }
  std::optional<std::uint64_t> oom_kills() const;
  std::uint64_t new_tag() { return tags_.next(); }

 private:
  struct Pipes;
  Result<> open_pipes(const StartRequest& request, Pipes& pipes) const;
  Result<> open_terminal_for(const StartRequest& request, Pipes& pipes) const;
  ChildPlan plan_for(const StartRequest& request, const Pipes& pipes);

  Executor executor_;
  bool native_;
  bool keep_caps_;
  Fd oom_counter_;
  Fd null_;
  std::optional<rlimit> open_files_;  // of programs, when execd has raised its own
  Tags tags_;
  std::unordered_map<pid_t, std::shared_ptr<Process>> running_;
};

}  // namespace osb::execd
