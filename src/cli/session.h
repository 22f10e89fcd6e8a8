// Carries one command in a sandbox: stdin, stdout, stderr and signals, byte for byte, until it ends.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "cli/frames.h"
#include "cli/raw_terminal.h"
#include "cli/signals.h"
#include "cli/sink.h"
#include "cli/units.h"

namespace osb::cli {

struct Streams {
  int input = 0;  // -1 = none
  int output = 1;
  int error_output = 2;
};

// How it ended. Ours: the person at the terminal, or whoever read our output, ended it before the command did.
struct Outcome {
  enum class Kind { ended, interrupted, broken_pipe, overdue } kind = Kind::ended;
  Ending ending;
  int signal = SIGINT;  // interrupted by it
};
int exit_status_of(const Outcome& outcome);

// One thread, one poll loop, no buffer grows: input is read only while the socket takes it, the socket only while
// stdout and stderr take it, so a slow reader slows the command down as a pipe would.
class Session {
 public:
  // `unread`: bytes that came behind the 101. `signals` may be null. The socket stays the caller's.
  Session(int socket, std::string unread, Streams streams, Signals* signals);

  void every(Millis period, std::function<void()> tick) { period_ = period, tick_ = std::move(tick); }
  void give_up_after(Millis span) { give_up_ = Clock::now() + span; }  // the net under the sandbox's own time limit

  // The command has a terminal and this is ours: its size is passed on, and what asks us to end ends us.
  void use_terminal(RawTerminal& terminal) { terminal_ = &terminal; }

  // Errc::unavailable: the connection ended before the command did.
  Result<Outcome> run();

 private:
  using Clock = std::chrono::steady_clock;

  Result<> turn();
  int millis_to_next_event() const;
  void take_input();
  void take_signals();
  bool take_terminal_signal(int number);
  void send_size();
  Result<> take_output();
  Result<> deliver();  // frames that are whole, while somebody takes them
  Result<> send_pending();
  Result<> check_sinks();
  void check_clocks();
  bool congested() const { return output_.pending() || error_output_.pending(); }

  int socket_;
  Streams streams_;
  Signals* signals_;
  RawTerminal* terminal_ = nullptr;
  Sink output_;
  Sink error_output_;
  FrameDecoder decoder_;
  std::string to_peer_;
  bool peer_gone_ = false;
  std::optional<Outcome> outcome_;
  std::optional<Clock::time_point> interrupted_at_;
  std::optional<Clock::time_point> broken_at_;
  std::optional<Clock::time_point> give_up_;
  Millis period_{0};
  std::function<void()> tick_;
  Clock::time_point next_tick_;
};

}  // namespace osb::cli
