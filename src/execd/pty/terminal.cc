#include "execd/pty/terminal.h"

#include <algorithm>

#include "base/clock.h"
#include "base/id.h"
#include "execd/collector.h"
#include "execd/pty/attachment.h"
#include "execd/run_request.h"
#include "execd/sandbox.h"

namespace osb::execd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPoliteness = std::chrono::seconds(2);
constexpr auto kPatience = std::chrono::seconds(5);
constexpr std::int64_t kFreshNanos = 60LL * 1'000'000'000;
constexpr int kReadsInARow = 8;
constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kMaxRuns = 1024;
// What the kernel may still hold of a terminal whose shell has ended; it cannot be asked how much that is.
constexpr std::size_t kTerminalRest = 64 * 1024;

std::vector<Attempt> shell_attempts(const std::string& command) {
  std::vector<std::string> bash{"bash", "--norc", "--noprofile"};
  std::vector<std::string> sh{"sh"};
  for (auto* argv : {&bash, &sh})
    if (!command.empty()) argv->insert(argv->end(), {"-c", command});
  auto attempts = attempts_for_argv(std::move(bash));
  auto plain = attempts_for_argv(std::move(sh));
  attempts.push_back(std::move(plain.front()));
  return attempts;
}

}  // namespace

Terminal::Terminal(std::string id, std::string cwd, std::string command)
    : id_(std::move(id)), cwd_(std::move(cwd)), command_(std::move(command)), used_nanos_(boot_now_nanos()) {}

Result<> Terminal::start(Sandbox& sandbox, bool tty) {
  if (process_) return Ok{};
  if (sandbox.processes.running() >= Commands::kMaxRunning) return Error(Errc::exhausted, "256 programs are running");
  RunRequest request;
  request.argv = {"bash"};
  request.with_stdin = true;
  if (tty) request.terminal = WindowSize{};
  TRY(auto start, prepare(sandbox.setup, std::move(request)));
  start.attempts = shell_attempts(command_);
  if (!cwd_.empty()) {
    start.cwd = cwd_;
    start.cwd_may_be_missing = false;
    start.env.insert_or_assign("PWD", cwd_);
  }
  TRY(process_, sandbox.processes.start(start));
  tty_ = tty;
  sandbox.tasks.spawn("terminal", read_output(sandbox, process_));
  return Ok{};
}

void Terminal::remove() {
  gone_ = true;
  if (process_ && process_->running()) process_->kill_all();
  if (client_) client_->end_with_error("SESSION_GONE", "the session was deleted");
}

// ---- output -----------------------------------------------------------------------------------------------

bool Terminal::client_lags() const { return client_ && (output_.end() - client_->sent() > kAhead || runs_.size() > kMaxRuns); }

void Terminal::append(std::string_view bytes, bool error_output) {
  output_.append(bytes);
  if (!client_ || tty_) return;
  std::erase_if(runs_, [this](const Run& run) { return run.end <= client_->sent(); });
  if (runs_.empty() || runs_.back().error_output != error_output) runs_.push_back({0, error_output});
  runs_.back().end = output_.end();
}

Terminal::Run Terminal::run_at(std::uint64_t offset) const {
  for (const Run& run : runs_)
    if (offset < run.end) return run;
  return {output_.end(), false};
}

std::size_t Terminal::read_one(OutputPipe& pipe, bool error_output, std::size_t most) {
  std::size_t n = pipe.read(scratch().first(std::min(most, kReadBytes)));
  if (n > 0) append({scratch().data(), n}, error_output);
  return n;
}

// Until the leader has ended and what it wrote is in the ring; then the client hears how it ended.
Task<void> Terminal::read_output(Sandbox& sandbox, std::shared_ptr<Process> process) {
  auto self = shared_from_this();
  std::size_t left[2] = {~std::size_t{0}, ~std::size_t{0}};
  int reads = 0;
  for (bool closing = false;;) {
    if (client_lags()) {
      co_await process->activity(Process::Clock::time_point::max());
      continue;
    }
    std::size_t out = read_one(process->out(), false, left[0]);
    std::size_t err = read_one(process->err(), true, left[1]);
    left[0] -= out;
    left[1] -= err;
    if (out + err > 0) {
      if (client_) client_->wake();
      if (++reads % kReadsInARow == 0) co_await give_way();
      continue;
    }
    if (closing) break;
    if (process->running()) {
      co_await process->activity(Process::Clock::time_point::max());
      continue;
    }
    closing = true;
    left[0] = process->has_terminal() ? kTerminalRest : process->out().available();
    left[1] = process->err().available();
    if (left[0] > 0) process->out().expect_bytes();
    if (left[1] > 0) process->err().expect_bytes();
  }
  used_nanos_ = boot_now_nanos();
  process_ = nullptr;
  if (client_) client_->end_with_exit(process->end()->code);
  process->close_terminal();
  if (process->err().is_open()) drain_in_background(sandbox, std::move(process));
}

// ---- the place --------------------------------------------------------------------------------------------

void Terminal::seat(Attachment& client) { client_ = &client; }

Task<bool> Terminal::take_over(Attachment& client) {
  auto executor = co_await asio::this_coro::executor;
  auto begun = Clock::now();
  while (client_) {
    client_->end_with(4001, "TAKEN_OVER");
    auto waited = Clock::now() - begun;
    if (waited >= kPatience) co_return false;
    if (waited >= kPoliteness) client_->cut();
    Timer timer(executor, begun + (waited < kPoliteness ? kPoliteness : kPatience));
    auto place = waiting_.insert(waiting_.end(), &timer);
    co_await timer.async_wait(nothrow);
    waiting_.erase(place);
  }
  seat(client);
  co_return true;
}

void Terminal::leave(const Attachment& client) {
  if (client_ != &client) return;
  client_ = nullptr;
  runs_.clear();
  used_nanos_ = boot_now_nanos();
  if (process_) process_->wake();
  for (Timer* timer : waiting_) timer->cancel();
}

// ---- the table --------------------------------------------------------------------------------------------

bool Terminals::make_room() {
  if (terminals_.size() < kMost) return true;
  auto oldest = terminals_.end();
  for (auto it = terminals_.begin(); it != terminals_.end(); ++it) {
    const Terminal& terminal = **it;
    if (terminal.running() || terminal.attached() || boot_now_nanos() - terminal.used_nanos() < kFreshNanos) continue;
    if (oldest == terminals_.end() || terminal.used_nanos() < (*oldest)->used_nanos()) oldest = it;
  }
  if (oldest == terminals_.end()) return false;
  terminals_.erase(oldest);
  return true;
}

Result<std::shared_ptr<Terminal>> Terminals::add(std::string cwd, std::string command) {
  if (!make_room()) return Error(Errc::exhausted, "64 terminals are open; delete one first");
  return terminals_.emplace_back(std::make_shared<Terminal>(random_hex(16), std::move(cwd), std::move(command)));
}

std::shared_ptr<Terminal> Terminals::find(std::string_view id) const {
  auto found = std::ranges::find_if(terminals_, [id](const auto& terminal) { return terminal->id() == id; });
  return found == terminals_.end() ? nullptr : *found;
}

bool Terminals::remove(std::string_view id) {
  auto terminal = find(id);
  if (!terminal) return false;
  std::erase(terminals_, terminal);
  terminal->remove();
  return true;
}

}  // namespace osb::execd
