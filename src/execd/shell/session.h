// Session: one long-lived shell and the runs that wait for it.
//
// Everything a shell is lives on between runs: variables, functions, aliases, options, directory, umask, jobs. If the shell
// itself ends (`exec`, `kill -9 $$`, `set -e`, a command that cannot be stopped in another way) the next run finds a new
// one, with the exported variables and the directory that were reported at the end of the last run.
#pragma once
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "execd/process.h"
#include "execd/shell/shell_run.h"

namespace osb::execd {
struct Sandbox;
}

namespace osb::execd::shell {

class Session : public std::enable_shared_from_this<Session> {
 public:
  static constexpr std::size_t kMaxQueue = 16;  // runs, with the one that runs

  Session(Sandbox& sandbox, std::string id, std::string cwd) : sandbox_(sandbox), id_(std::move(id)), cwd_(std::move(cwd)) {}

  const std::string& id() const { return id_; }
  const std::string& cwd() const { return cwd_; }
  bool full() const { return queue_.size() >= kMaxQueue; }

  // Errors as Processes::start.
  Result<> start_shell();
  // Takes its place in the queue; its events go to `record`, whoever reads them.
  std::shared_ptr<ShellRun> submit(ShellRequest asked, std::shared_ptr<runs::Run> record);
  std::shared_ptr<ShellRun> find(std::string_view run_id) const;
  std::shared_ptr<ShellRun> current() const { return queue_.empty() ? nullptr : queue_.front(); }
  // An interrupt first, which the shell survives; a command that does not heed it takes the shell with it after `grace`.
  void stop(const std::shared_ptr<ShellRun>& run, Stop why, std::chrono::milliseconds grace);
  // Ends the shell, everything it started, and every run.
  void close();

 private:
  struct Control;
  static Task<void> perform(std::shared_ptr<Session> self, std::shared_ptr<ShellRun> run);
  static Task<void> listen(std::shared_ptr<Session> self, std::shared_ptr<Control> control);
  static Task<void> await_end(std::shared_ptr<Session> self, std::shared_ptr<Process> shell);
  Task<void> hand_over(std::shared_ptr<ShellRun> run);
  void begin(const std::shared_ptr<ShellRun>& run, std::string& batch);
  void limit(const std::shared_ptr<ShellRun>& run);
  void press(const std::shared_ptr<ShellRun>& run, int pressed, std::chrono::milliseconds left);
  static Task<void> interrupt_twice(std::vector<Fd> processes);
  void hear(Control& control);
  void shell_ended(const std::shared_ptr<Process>& shell);
  void leave(const ShellRun& run);

  Sandbox& sandbox_;
  std::string id_;
  std::string cwd_;      // as last reported
  std::string exports_;  // as last reported
  std::shared_ptr<Process> shell_;
  std::shared_ptr<Control> control_;
  std::vector<std::shared_ptr<ShellRun>> queue_;  // the first one runs
  bool closed_ = false;
};

}  // namespace osb::execd::shell
