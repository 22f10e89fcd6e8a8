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
#include "execd/setup.h"

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
  bool answer_first = false;           // the program's ends of the pipes are closed when somebody waits for output, not at once
  bool inherit_stdio = false;          // execd's own descriptors instead of pipes
  std::optional<WindowSize> terminal;  // one terminal instead of pipes: input(), out() and resize() are its
  bool tagged = true;                  // false: it tags what it starts itself, see new_tag()
  std::optional<std::chrono::milliseconds> timeout;
};

class Processes {
 public:
  // `oom_counter`: a kernel file with a line "oom_kill N", or nothing.
  Processes(Executor executor, const Setup& setup, Fd oom_counter);

  // The program runs when this returns. Errors: field "cwd" or "uid" = the caller's mistake; field "program" = it
  // cannot be executed (not_found, permission_denied); Errc::exhausted = no process to be had.
  Result<std::shared_ptr<Process>> start(const StartRequest& request);
  // Hears of one end, if there is one, and leaves the removal, which takes the kernel longer, to reap().
  bool hear_first();
  // Removes what has ended; true when there may be more (the caller lets others run first).
  bool reap();
  std::size_t running() const { return running_.size(); }
  std::optional<std::uint64_t> oom_kills() const;
  // Makes what the next program needs while nobody waits for it: at the start, and when an answer is out. Most sandboxes run one
  // program and end; nothing is made for a second before there has been one.
  void prepare_next();
  bool expects_more() const { return may_prepare_ && started_ != 1; }
  std::uint64_t new_tag() { return tags_.next(); }

 private:
  struct Pipes;
  void hear_of(const siginfo_t& info);
  Result<> open_pipes(const StartRequest& request, Pipes& pipes);
  Result<> open_terminal_for(const StartRequest& request, Pipes& pipes) const;
  ChildPlan plan_for(const StartRequest& request, const Pipes& pipes);

  Executor executor_;
  bool native_;
  bool keep_caps_;
  Fd oom_counter_;
  Fd null_;
  std::optional<rlimit> open_files_;  // of programs, when execd has raised its own
  Tags tags_;
  bool leads_session_;  // the sandbox's own: programs need only a group of their own
  bool groupless_;      // execd has no supplementary groups that a program would have to lose
  bool may_prepare_;    // see prepare_next()
  bool alone_;          // no other process is in this sandbox
  unsigned started_ = 0;
  Pipe spare_out_;
  Pipe spare_err_;
  std::optional<std::uint64_t> spare_kills_;  // as long as nobody is there who could be killed
  std::unordered_map<pid_t, std::shared_ptr<Process>> running_;
};

}  // namespace osb::execd
