// Process: one program execd has started, its output, its deadline and how it ended.
//
// Held by shared_ptr: by Processes while it runs, by whoever reads its output or remembers its end after that.
#pragma once
#include <signal.h>

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <chrono>
#include <list>
#include <memory>
#include <optional>

#include "async/task.h"
#include "base/clock.h"
#include "base/fd.h"
#include "execd/exit_status.h"
#include "execd/output_source.h"
#include "execd/process_tree.h"
#include "execd/pty/device.h"
#include "execd/wakeup.h"

namespace osb::execd {

class Processes;

class Process : public OutputSource {
 public:
  // `started_nanos`: CLOCK_BOOTTIME just before the program was asked for.
  Process(Executor executor, Processes& owner, TreeRoot root, std::int64_t started_nanos);

  pid_t pid() const { return root_.leader; }
  bool running() const override { return !end_; }
  const std::optional<ExitStatus>& end() const { return end_; }
  WallTime started_at() const { return started_at_; }
  WallTime ended_at() const { return ended_at_; }
  std::int64_t ended_nanos() const { return ended_nanos_; }  // CLOCK_BOOTTIME
  std::int64_t elapsed_millis() const;                       // up to the end, or up to now

  std::optional<asio::posix::basic_stream_descriptor<Executor>>& input() { return input_; }

  // Of a program with a terminal: out() and input() are the two directions of one, err() was never made.
  bool has_terminal() const { return static_cast<bool>(terminal_); }
  void resize(WindowSize size) { resize_terminal(out_.handle(), size); }
  // As a key typed there: to the foreground group; signals that end a session also to the leader's.
  void signal_terminal(int signal);
  // After the end: what still holds the other side is hung up on.
  void close_terminal();

  void signal_group(int signal);
  void kill_all();  // the whole tree, at once; only while it runs, or its leader's number may be somebody else's
  // SIGTERM to the group now, the whole tree after `grace` or when the leader has gone.
  void interrupt(Clock::duration grace);
  // False when it still runs after `patience`. Whoever waits goes on inside the call that reaps the process.
  Task<bool> wait_end(Clock::duration patience);

 private:
  friend class Processes;
  void ended(const siginfo_t& info);
  void limit(std::chrono::milliseconds timeout);
  void arm(Clock::duration after, bool is_timeout);
  ExitStatus judge(const siginfo_t& info) const;

  Processes& owner_;
  TreeRoot root_;
  Timer killer_;
  std::optional<asio::posix::basic_stream_descriptor<Executor>> input_;
  // The program's side, held open while it runs: a program that closes all of its own and opens /dev/tty again is not over.
  Fd terminal_;
  std::list<Wakeup*> waiting_for_end_;
  std::optional<ExitStatus> end_;
  std::optional<std::uint64_t> oom_kills_before_;
  WallTime started_at_ = wall_now();
  WallTime ended_at_;
  std::int64_t started_nanos_;
  std::int64_t ended_nanos_ = 0;
  bool timed_out_ = false;
  bool interrupted_ = false;
};

}  // namespace osb::execd
