#include "execd/shell/session.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/text.h"
#include "execd/collector.h"
#include "execd/events.h"
#include "execd/process_tree.h"
#include "execd/run_request.h"
#include "execd/runs/relay.h"
#include "execd/sandbox.h"
#include "execd/shell/script.h"
#include "sys/raw.h"

namespace osb::execd::shell {
namespace {

using Clock = OutputSource::Clock;
// A run that is over by then is answered whole, in one write.
constexpr auto kShortRun = std::chrono::milliseconds(2);
constexpr auto kTimeoutGrace = std::chrono::milliseconds(500);
constexpr auto kSecondPress = std::chrono::milliseconds(200);
constexpr auto kLongTime = std::chrono::hours(24);
constexpr std::size_t kMaxReport = 4 * 1024 * 1024;  // a shell that says more without a report does not work for us
constexpr std::size_t kMaxExports = 256 * 1024;

Result<std::pair<Fd, Fd>> make_sockets() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Error::from_errno("socketpair", errno, Errc::exhausted);
  return std::pair(Fd(ends[0]), Fd(ends[1]));
}

ExitStatus status_of(int code) { return {.cause = code == 127 ? Cause::not_found : Cause::exited, .code = code}; }

}  // namespace

// Our end of the shell's socket.
struct Session::Control {
  Control(Executor executor, Fd socket) : socket(executor, socket.release()) {}
  asio::posix::basic_stream_descriptor<Executor> socket;
  std::string heard;   // and not yet understood
  std::string owing;   // nonce of the run whose exports are still to come
  std::string unsaid;  // goes before the next command
};

Result<> Session::start_shell() {
  RunRequest asked;
  asked.argv = bash_words();
  TRY(StartRequest start, prepare(sandbox_.setup, std::move(asked)));
  start.cwd = cwd_;
  start.cwd_may_be_missing = false;
  start.env.insert_or_assign("PWD", cwd_);
  for (Attempt& attempt : attempts_for_argv(sh_words())) start.attempts.push_back(std::move(attempt));
  TRY(auto sockets, make_sockets());
  start.input = sockets.second.get();
  TRY(shell_, sandbox_.processes.start(start));
  control_ = std::make_shared<Control>(sandbox_.tasks.executor(), std::move(sockets.first));
  control_->unsaid = opening(exports_);
  sandbox_.tasks.spawn("session reports", listen(shared_from_this(), control_));
  sandbox_.tasks.spawn("session shell", await_end(shared_from_this(), shell_));
  return Ok{};
}

std::shared_ptr<ShellRun> Session::submit(ShellRequest asked, std::shared_ptr<runs::Run> record) {
  auto run = std::make_shared<ShellRun>(sandbox_.tasks.executor(), std::move(asked), std::move(record));
  queue_.push_back(run);
  sandbox_.tasks.spawn("session run", perform(shared_from_this(), run));
  return run;
}

std::shared_ptr<ShellRun> Session::find(std::string_view run_id) const {
  auto found = std::find_if(queue_.begin(), queue_.end(), [&](const auto& run) { return run->record().id() == run_id; });
  return found == queue_.end() ? nullptr : *found;
}

// A shell that cannot be had ends the run as a command that could not be started.
void Session::begin(const std::shared_ptr<ShellRun>& run, std::string& batch) {
  // The directory may have gone since the last run; a session goes on in another one rather than not at all.
  Result<> started = Ok{};
  if (closed_)
    started = Error(Errc::not_found, "the session was deleted");
  else if (!shell_)
    started = start_shell();
  if (!started && started.error().field() == "cwd") {
    cwd_ = "/";
    started = start_shell();
  }
  const Setup& setup = sandbox_.setup;
  if (started) started = run->begin(becomes(setup));
  if (started) return;
  events::append_output(batch, run->record().next_seq(), "stderr", cat("the session's shell: ", started.error().what()));
  run->finish({.cause = Cause::not_started, .code = 126});
}

Task<void> Session::perform(std::shared_ptr<Session> self, std::shared_ptr<ShellRun> run) {
  runs::Run& record = run->record();
  std::string batch;
  events::append_init(batch, record.next_seq(), self->id_, record.id());
  if (self->queue_.front() != run) {
    record.keep(batch);
    batch.clear();
  }
  while (run->running() && self->queue_.front() != run) co_await run->activity(Clock::time_point::max());
  if (run->running()) self->begin(run, batch);
  if (run->running()) {
    self->limit(run);
    co_await self->hand_over(run);
    co_await run->wait_end(kShortRun);
  }
  runs::Relay relay(*run, record, run->asked().raw);
  co_await relay.to_the_end(batch);
  if (failed(*run->end()))
    events::append_error(batch, record.next_seq(), *run->end(), run->elapsed_millis());
  else
    events::append_complete(batch, record.next_seq(), run->elapsed_millis());
  record.finish(batch);
  self->leave(*run);
  if (run->has_open_pipe()) drain_in_background(self->sandbox_, std::move(run));
}

// Until the shell has taken all of it; a shell that is gone has taken what it will ever take.
Task<void> Session::hand_over(std::shared_ptr<ShellRun> run) {
  auto control = control_;
  std::string text = std::exchange(control->unsaid, {}) + run->text();
  std::string_view rest = text;
  while (!rest.empty() && control->socket.is_open()) {
    ssize_t n = ::send(control->socket.native_handle(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      rest.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return;
    auto [ec] = co_await control->socket.async_wait(asio::posix::descriptor_base::wait_write, nothrow);
    if (ec) co_return;
  }
}

void Session::leave(const ShellRun& run) {
  std::erase_if(queue_, [&](const auto& other) { return other.get() == &run; });
  if (!queue_.empty()) queue_.front()->wake();
}

// ---- what the shell says ----

Task<void> Session::listen(std::shared_ptr<Session> self, std::shared_ptr<Control> control) {
  for (;;) {
    auto [ec] = co_await control->socket.async_wait(asio::posix::descriptor_base::wait_read, nothrow);
    if (ec) co_return;
    ssize_t n = ::recv(control->socket.native_handle(), scratch().data(), scratch().size(), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) co_return;  // its end is told by the kernel, not by this
    if (n < 0) continue;
    control->heard.append(scratch().data(), static_cast<std::size_t>(n));
    self->hear(*control);
  }
}

void Session::hear(Control& control) {
  if (auto exports = control.owing.empty() ? std::nullopt : take_exports(control.heard, control.owing)) {
    if (exports->size() <= kMaxExports) exports_ = *std::move(exports);
    control.owing.clear();
  }
  auto run = queue_.empty() ? nullptr : queue_.front();
  auto report = run && run->begun() && run->running() ? find_report(control.heard, run->nonce()) : std::nullopt;
  if (report) {
    if (report->cwd.starts_with('/')) cwd_ = std::move(report->cwd);
    control.owing = run->nonce();
    run->finish(status_of(report->status));
    if (run->stopping() != Stop::none && shell_)
      if (auto left = children_in_group_of(shell_->pid()); !left.empty())
        sandbox_.tasks.spawn("interrupt what is left", interrupt_twice(std::move(left)));
    return hear(control);  // the rest may be there already
  }
  if (control.heard.size() > kMaxReport && shell_) shell_->kill_all();
}

// The kernel's word on the shell: whatever runs in it has ended with it, unless it had already reported.
Task<void> Session::await_end(std::shared_ptr<Session> self, std::shared_ptr<Process> shell) {
  bool ended = false;
  while (!ended) ended = co_await shell->wait_end(kLongTime);
  self->shell_ended(shell);
}

void Session::shell_ended(const std::shared_ptr<Process>& shell) {
  if (shell_ != shell) return;
  ssize_t n = ::recv(control_->socket.native_handle(), scratch().data(), scratch().size(), MSG_DONTWAIT);
  if (n > 0) {
    control_->heard.append(scratch().data(), static_cast<std::size_t>(n));
    hear(*control_);
  }
  boost::system::error_code ignored;
  control_->socket.close(ignored);
  control_.reset();
  shell_.reset();
  if (!queue_.empty() && queue_.front()->begun()) queue_.front()->finish(*shell->end());
}

// ---- stopping ----

void Session::limit(const std::shared_ptr<ShellRun>& run) {
  if (!run->asked().timeout) return;
  run->clock().expires_after(*run->asked().timeout);
  run->clock().async_wait([self = shared_from_this(), run](boost::system::error_code ec) {
    if (!ec) self->stop(run, Stop::timed_out, kTimeoutGrace);
  });
}

void Session::stop(const std::shared_ptr<ShellRun>& run, Stop why, std::chrono::milliseconds grace) {
  if (!run->ask_to_stop(why)) return;
  if (!run->begun() || !shell_) return run->finish({.cause = Cause::signalled, .code = 128 + SIGINT, .signal = SIGINT});
  press(run, 0, grace);
}

// Jobs in the background ignore SIGINT, as the shell started them so; what it waits for, and the shell itself, do not. Twice,
// because a program that is just being started may lose the first one.
void Session::press(const std::shared_ptr<ShellRun>& run, int pressed, std::chrono::milliseconds left) {
  if (!run->running() || !shell_) return;
  if (pressed == 2) return shell_->kill_all();
  shell_->signal_group(SIGINT);
  // The interrupt may hit the shell while it reports; then it needs to be asked again. A second report is skipped.
  std::string again = report_request(run->nonce());
  [[maybe_unused]] auto n = ::send(control_->socket.native_handle(), again.data(), again.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  auto pause = pressed == 0 ? std::min(kSecondPress, left / 2) : left;
  run->clock().expires_after(pause);
  run->clock().async_wait([self = shared_from_this(), run, pressed, rest = left - pause](boost::system::error_code ec) {
    if (!ec) self->press(run, pressed + 1, rest);
  });
}

// An interrupt that falls between the start of a program and its first instruction sends the shell back to its prompt and is lost
// on the program, for which the shell later waits. Those that the stopped run leaves get their own; jobs in the background ignore it.
Task<void> Session::interrupt_twice(std::vector<Fd> processes) {
  for (const auto& process : processes) sys::raw::pidfd_send_signal(process.get(), SIGINT);
  co_await sleep_for(kSecondPress);
  for (const auto& process : processes) sys::raw::pidfd_send_signal(process.get(), SIGINT);
}

void Session::close() {
  closed_ = true;
  auto runs = queue_;
  for (const auto& run : runs)
    if (run->ask_to_stop(Stop::interrupted) && !(run->begun() && shell_)) run->finish({.cause = Cause::signalled, .code = 128 + SIGKILL});
  if (shell_) shell_->kill_all();
}

}  // namespace osb::execd::shell
