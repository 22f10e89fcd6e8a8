#include "execd/shell/shell_run.h"

#include "base/clock.h"
#include "base/id.h"
#include "execd/shell/script.h"

namespace osb::execd::shell {

ShellRun::ShellRun(Executor executor, ShellRequest asked, std::shared_ptr<runs::Run> record)
    : OutputSource(executor),
      asked_(std::move(asked)),
      record_(std::move(record)),
      nonce_(random_hex(16)),
      clock_(executor),
      ended_(executor, Timer::time_point::max()) {}

std::int64_t ShellRun::elapsed_millis() const { return begun_ ? (ended_nanos_ - started_nanos_) / 1'000'000 : 0; }

Result<> ShellRun::begin(const Identity* owner) {
  TRY(Fifo out, Fifo::make(owner));
  TRY(Fifo err, Fifo::make(owner));
  out_.open({.read = out.take_read_end(), .write = {}});
  err_.open({.read = err.take_read_end(), .write = {}});
  out_fifo_ = std::move(out);
  err_fifo_ = std::move(err);
  begun_ = true;
  started_nanos_ = boot_now_nanos();
  return Ok{};
}

std::string ShellRun::text() const {
  return errand_text({.command = asked_.command, .cwd = asked_.cwd, .out = out_fifo_->path(), .err = err_fifo_->path(), .nonce = nonce_});
}

bool ShellRun::ask_to_stop(Stop why) {
  if (!running() || stop_ != Stop::none) return false;
  stop_ = why;
  return true;
}

void ShellRun::finish(ExitStatus status) {
  if (!running()) return;
  if (stop_ == Stop::timed_out) status.cause = Cause::timed_out;
  if (stop_ == Stop::interrupted) {
    status.cause = Cause::signalled;
    status.interrupted = true;
  }
  end_ = status;
  ended_nanos_ = boot_now_nanos();
  out_fifo_.reset();
  err_fifo_.reset();
  clock_.cancel();
  ended_.cancel();
  wake();
}

Task<bool> ShellRun::wait_end(Clock::duration patience) {
  if (running()) {
    ended_.expires_after(patience);
    co_await ended_.async_wait(nothrow);
  }
  co_return !running();
}

}  // namespace osb::execd::shell
