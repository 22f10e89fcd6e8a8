#include "execd/process.h"

#include <sys/wait.h>

#include "execd/processes.h"

namespace osb::execd {

Process::Process(Executor executor, Processes& owner, TreeRoot root, std::int64_t started_nanos)
    : OutputSource(executor), owner_(owner), root_(root), killer_(executor), started_nanos_(started_nanos) {}

std::int64_t Process::elapsed_millis() const { return ((end_ ? ended_nanos_ : boot_now_nanos()) - started_nanos_) / 1'000'000; }

void Process::signal_group(int signal) {
  if (running()) ::kill(-root_.leader, signal);
}

void Process::signal_terminal(int signal) {
  if (!running()) return;
  pid_t front = foreground_group(out_.handle());
  if (front != 0) ::kill(-front, signal);
  bool is_key = signal == SIGINT || signal == SIGQUIT;
  if (front == 0 || (front != root_.leader && !is_key)) signal_group(signal);
}

void Process::close_terminal() {
  out_.close();
  input_.reset();
  terminal_.reset();
}

void Process::kill_all() { kill_tree(root_); }

void Process::arm(Clock::duration after, bool is_timeout) {
  killer_.expires_after(after);
  killer_.async_wait([weak = weak_from_this(), is_timeout](boost::system::error_code ec) {
    auto self = std::static_pointer_cast<Process>(weak.lock());
    if (ec || !self || !self->running()) return;
    self->timed_out_ = self->timed_out_ || is_timeout;
    self->kill_all();
  });
}

void Process::limit(std::chrono::milliseconds timeout) { arm(timeout, true); }

void Process::interrupt(Clock::duration grace) {
  if (!running() || interrupted_) return;
  interrupted_ = true;
  signal_group(SIGTERM);
  arm(grace, false);
}

Task<bool> Process::wait_end(Clock::duration patience) {
  if (running()) {
    Wakeup wakeup(activity_.get_executor());
    waiting_for_end_.push_back(&wakeup);
    co_await wakeup.wait(patience);
    waiting_for_end_.remove(&wakeup);
  }
  co_return !running();
}

ExitStatus Process::judge(const siginfo_t& info) const {
  bool by_signal = info.si_code != CLD_EXITED;
  ExitStatus status{.cause = by_signal ? Cause::signalled : Cause::exited,
                    .code = by_signal ? 128 + info.si_status : info.si_status,
                    .signal = by_signal ? info.si_status : 0,
                    .interrupted = interrupted_};
  if (timed_out_) {
    status.cause = Cause::timed_out;
  } else if (interrupted_) {
    status.cause = Cause::signalled;
  } else if (status.code == 128 + SIGKILL && owner_.oom_kills() > oom_kills_before_) {
    status.cause = Cause::out_of_memory;
  } else if (!by_signal && status.code == 127) {
    status.cause = Cause::not_found;
  }
  return status;
}

void Process::ended(const siginfo_t& info) {
  end_ = judge(info);
  ended_at_ = wall_now();
  ended_nanos_ = boot_now_nanos();
  killer_.cancel();
  // The leader of an interrupted tree may have gone before those it started.
  if (interrupted_) kill_all();
  activity_.cancel();
  while (!waiting_for_end_.empty()) {
    Wakeup* wakeup = waiting_for_end_.front();
    waiting_for_end_.pop_front();
    wakeup->wake();
  }
}

}  // namespace osb::execd
