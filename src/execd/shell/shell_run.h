// ShellRun: one command given to the shell of a session, from its place in the queue to its end.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "execd/exit_status.h"
#include "execd/output_source.h"
#include "execd/runs/run.h"
#include "execd/shell/fifo.h"

namespace osb::execd::shell {

struct ShellRequest {
  std::string command;
  std::string cwd;  // absolute, or empty
  std::optional<std::chrono::milliseconds> timeout;
  bool raw = false;  // output as it was written, not line by line
};

// Why a run has to end before its time.
enum class Stop : std::uint8_t { none, timed_out, interrupted };

class ShellRun final : public OutputSource {
 public:
  ShellRun(Executor executor, ShellRequest asked, std::shared_ptr<runs::Run> record);

  bool running() const override { return !end_; }
  const std::optional<ExitStatus>& end() const { return end_; }
  const ShellRequest& asked() const { return asked_; }
  runs::Run& record() { return *record_; }
  const std::string& nonce() const { return nonce_; }
  std::int64_t elapsed_millis() const;

  // Makes the two fifos; from here on the run is in the shell's hands.
  Result<> begin(const Identity* owner);
  bool begun() const { return begun_; }
  std::string text() const;  // for the shell

  // The first reason counts. False when there is nothing to stop any more.
  bool ask_to_stop(Stop why);
  Stop stopping() const { return stop_; }

  void finish(ExitStatus status);                 // the first end counts; a reason to stop decides what it is called
  Task<bool> wait_end(Clock::duration patience);  // false when it still runs

  Timer& clock() { return clock_; }  // the deadline first, then the steps of stopping

 private:
  ShellRequest asked_;
  std::shared_ptr<runs::Run> record_;
  std::string nonce_;
  std::optional<Fifo> out_fifo_;
  std::optional<Fifo> err_fifo_;
  Timer clock_;
  Timer ended_;
  std::optional<ExitStatus> end_;
  Stop stop_ = Stop::none;
  bool begun_ = false;
  std::int64_t started_nanos_ = 0;
  std::int64_t ended_nanos_ = 0;
};

}  // namespace osb::execd::shell
