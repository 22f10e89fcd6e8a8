// ForkServer: a Python process of the sandbox that has imported ipykernel and forks kernels, each in milliseconds.
//
// It runs as the sandbox's user, and so may be killed or impersonated by any program there: what it says is checked, and
// when it is gone the next use starts another. Idle it waits in select(2).
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "execd/kernels/bell.h"
#include "execd/kernels/kernelspec.h"
#include "execd/processes.h"

namespace osb::execd {

struct Sandbox;

// What is known of one forked kernel.
struct Forked {
  pid_t pid = 0;  // 0: not forked yet
  std::uint64_t tag = 0;
  bool listens = false;
  std::optional<int> end;  // exit code, or minus the signal
  std::optional<Error> problem;
};

class ForkServer {
 public:
  ForkServer(Executor executor, Sandbox& sandbox) : sandbox_(sandbox), changed_(executor) {}

  struct Wish {
    std::string program;  // the interpreter
    std::string ip;       // path in front of "-1" ... "-5"
    std::string key;
    std::string cwd;
    Env env;
  };
  // Starts the server where none runs. The kernel listens when this returns. Field "cwd": the caller's mistake.
  Task<Result<std::shared_ptr<Forked>>> fork(Wish wish, Timer::time_point until);
  Bell& changed() { return changed_; }

 private:
  Result<> start(const Wish& wish);
  // In any case the answer; what went wrong is in it. `wish` outlives the call.
  Task<std::shared_ptr<Forked>> ask_for(const Wish& wish, Timer::time_point until);
  void ask(std::string line);
  Task<void> write_out(std::shared_ptr<Process> server);
  Task<void> listen(std::shared_ptr<Process> server);
  void heard(std::string_view line);
  void lost(const Process& server);
  bool is_child(pid_t pid) const;

  Sandbox& sandbox_;
  Bell changed_;
  std::shared_ptr<Process> server_;
  std::string program_;
  std::string outbox_;
  std::string problem_;  // why the server could not start
  bool writing_ = false;
  std::map<std::string, std::shared_ptr<Forked>, std::less<>> children_;  // alive, or about to be
};

}  // namespace osb::execd
