// Kernel: one running interpreter and the connections to it. One run of code at a time; its end is the kernel's word
// (idle and a reply), never a guess, unless the kernel has died.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "execd/kernels/bell.h"
#include "execd/kernels/fork_server.h"
#include "execd/kernels/jupyter.h"
#include "execd/kernels/kernelspec.h"
#include "execd/kernels/output.h"
#include "execd/kernels/zmtp.h"
#include "execd/ring.h"

namespace osb::execd {

class Kernel : public std::enable_shared_from_this<Kernel> {
 public:
  using Clock = Timer::clock_type;

  struct Wish {
    Kernelspec spec;
    std::string language;
    std::string cwd;  // as the client gave it; empty = the sandbox's
  };
  // Answers requests when this returns. Field "cwd": the caller's mistake.
  static Task<Result<std::shared_ptr<Kernel>>> start(Sandbox& sandbox, Wish wish, Clock::duration patience);

  Kernel(Sandbox& sandbox, Wish wish);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  bool alive() const { return alive_; }
  // Started as it would be now: the same program, and no variable of the sandbox has changed since.
  bool is_current(const Kernelspec& spec) const;
  // Ends with exactly one terminal event. `events` lives until then.
  Task<void> execute(std::string code, CodeEvents& events);
  // Runs without events, count or history; false when it failed.
  Task<bool> execute_silently(std::string code, Clock::duration patience);
  // False when nothing runs. Returns when the run has ended, at the latest after a while.
  Task<bool> interrupt();
  // The process and everything it started; files of its sockets.
  void stop();

 private:
  struct Run;
  Task<Result<>> launch(Clock::time_point until);
  Task<Result<>> launch_forked(Clock::time_point until);
  Result<> launch_program();
  Result<std::string> connection_text();
  Task<Result<>> connect(Clock::time_point until);
  Task<Result<std::unique_ptr<zmtp::Peer>>> connect_to(int port, zmtp::Type type, Clock::time_point until);
  Task<Result<>> greet(Clock::time_point until);
  Task<Result<>> request(zmtp::Peer& peer, std::string_view type, std::string_view id, std::string content);
  Task<void> hear_iopub();
  Task<void> hear_shell();
  Task<void> take(jupyter::Incoming message);
  Task<void> take_output(Run& run, jupyter::Incoming message);
  Task<void> add_stream(Run& run, const boost::json::object& content);
  void add_result(Run& run, const boost::json::object& content, bool counted);
  void take_reply(Run& run, const boost::json::object& content);
  Task<void> wait_for(Run& run, Clock::time_point until);
  Task<void> settle();
  Task<void> watch_process();
  Task<void> close_soon();
  Task<std::string> obituary();
  std::optional<std::string> how_it_ended() const;
  bool process_ended() const;
  void lost();

  Sandbox& sandbox_;
  Wish wish_;
  jupyter::Session session_;
  std::string place_;
  Env env_;  // of a forked kernel
  int ports_[5] = {1, 2, 3, 4, 5};
  std::shared_ptr<Forked> forked_;    // by the fork server, or
  std::shared_ptr<Process> process_;  // started as its spec says
  Ring said_{4096, nullptr};          // the process itself, when it could not start
  std::optional<std::uint64_t> oom_kills_before_;
  std::unique_ptr<zmtp::Peer> shell_;
  std::unique_ptr<zmtp::Peer> iopub_;
  std::unique_ptr<zmtp::Peer> control_;  // only where interrupts are messages
  Bell changed_;
  Run* run_ = nullptr;
  int listening_ = 0;    // readers of the connections
  bool taking_ = false;  // output of run_ is on its way to its events
  bool alive_ = true;
  bool stopped_ = false;
};

}  // namespace osb::execd
