#include "execd/kernels/kernel.h"

#include <signal.h>

#include "base/id.h"
#include "base/text.h"
#include "execd/collector.h"
#include "execd/json.h"
#include "execd/sandbox.h"

namespace osb::execd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A reply without the end of output, or the other way round: the kernel drops messages, or does not keep to the protocol.
constexpr auto kStraggler = seconds(5);
constexpr auto kInterruptPatience = seconds(2);
constexpr auto kStragglerOfInterrupted = milliseconds(300);
constexpr auto kStartOfRun = seconds(2);
constexpr auto kGreetAgain = milliseconds(200);
constexpr auto kLastWords = milliseconds(300);

std::string_view text_of(const boost::json::object& object, std::string_view name) {
  auto* value = object.if_contains({name.data(), name.size()});
  return value && value->is_string() ? std::string_view(value->get_string().data(), value->get_string().size()) : std::string_view();
}

std::optional<std::int64_t> count_of(const boost::json::object& content) {
  auto count = number_member(content, "execution_count");
  return count ? *count : std::nullopt;
}

// Nobody is there to answer questions: code that asks gets an error from its kernel at once.
std::string execute_content(std::string_view code, bool silent) {
  std::string content = cat(R"({"silent":)", silent, R"(,"store_history":)", !silent,
                            R"(,"user_expressions":{},"allow_stdin":false,"stop_on_error":false,"code":)");
  append_json_string(content, code);
  return content += "}";
}

}  // namespace

// What is known of the run under way.
struct Kernel::Run {
  std::string id = random_hex(16);
  CodeEvents* events = nullptr;  // nullptr: nobody wants to know
  bool begun = false;            // the kernel has taken it up
  bool idle = false;
  bool replied = false;
  bool failed = false;
  bool counted = false;
  bool interrupted = false;
  std::string error;  // members of the error event, which comes last
  std::optional<std::int64_t> count;
  Clock::time_point heard = Clock::now();

  bool done() const { return idle && replied; }
};

Kernel::Kernel(Sandbox& sandbox, Wish wish)
    : sandbox_(sandbox),
      wish_(std::move(wish)),
      session_{random_hex(16), random_hex(32)},
      oom_kills_before_(sandbox.processes.oom_kills()),
      changed_(sandbox.executor) {}

Kernel::~Kernel() { stop(); }

Task<Result<std::shared_ptr<Kernel>>> Kernel::start(Sandbox& sandbox, Wish wish, Clock::duration patience) {
  auto until = Clock::now() + patience;
  auto kernel = std::make_shared<Kernel>(sandbox, std::move(wish));
  auto started = co_await kernel->launch(until);
  if (started) started = co_await kernel->connect(until);
  if (started) started = co_await kernel->greet(until);
  if (started) co_return kernel;
  kernel->stop();
  co_return std::move(started).error();
}

Task<Result<>> Kernel::request(zmtp::Peer& peer, std::string_view type, std::string_view id, std::string content) {
  auto frames = jupyter::make(session_, type, id, std::move(content));
  co_return co_await peer.send(std::move(frames));
}

// A subscription takes effect some time after it was sent. Asked until both the answer and what is published about it come.
Task<Result<>> Kernel::greet(Clock::time_point until) {
  listening_ = 2;
  sandbox_.tasks.spawn("kernel output", hear_iopub());
  sandbox_.tasks.spawn("kernel replies", hear_shell());
  sandbox_.tasks.spawn("kernel end", watch_process());
  while (Clock::now() < until && alive_) {
    Run run;
    run_ = &run;
    auto sent = co_await request(*shell_, "kernel_info_request", run.id, "{}");
    auto again = std::min(until, Clock::now() + kGreetAgain);
    while (sent && alive_ && !run.done() && (!run.replied || Clock::now() < again) && Clock::now() < until)
      co_await changed_.wait(run.replied ? again : until);
    co_await settle();
    if (!sent) co_return sent;
    if (run.done()) co_return Ok{};
  }
  if (alive_) co_return Error(Errc::timeout, cat("the ", wish_.language, " kernel did not answer in time"));
  std::string words = co_await obituary();
  co_return Error(Errc::unavailable, std::move(words));
}

// ---- what the kernel says ------------------------------------------------------------------------------------------

Task<void> Kernel::hear_iopub() {
  auto self = shared_from_this();
  for (;;) {
    auto message = co_await iopub_->receive();
    if (!message) break;
    auto incoming = jupyter::read(session_, *std::move(message));
    if (incoming) co_await take(*std::move(incoming));
  }
  --listening_;
  lost();
}

Task<void> Kernel::hear_shell() {
  auto self = shared_from_this();
  for (;;) {
    auto message = co_await shell_->receive();
    if (!message) break;
    auto incoming = jupyter::read(session_, *std::move(message));
    if (!incoming || !run_ || incoming->parent_id != run_->id || !incoming->type.ends_with("_reply")) continue;
    auto content = co_await jupyter::parse_content(std::move(incoming->content));
    if (!run_ || incoming->parent_id != run_->id) continue;
    if (content) take_reply(*run_, *content);
    run_->replied = true;
    run_->heard = Clock::now();
    changed_.ring();
  }
  --listening_;
  lost();
}

// What was published before the end is still read; then both readers stop, whoever else may hold the sockets.
void Kernel::lost() {
  changed_.ring();
  if (!alive_) return;
  alive_ = false;
  sandbox_.tasks.spawn("kernel close", close_soon());
}

Task<void> Kernel::close_soon() {
  auto self = shared_from_this();
  auto until = Clock::now() + kLastWords;
  while (listening_ > 0 && Clock::now() < until) co_await changed_.wait(until);
  for (auto* peer : {&shell_, &iopub_, &control_})
    if (*peer) (*peer)->close();
}

// Children that a kernel forked may keep its sockets open, so that its end is not seen there.
Task<void> Kernel::watch_process() {
  auto self = shared_from_this();
  while (alive_ && !process_ended()) {
    if (forked_) {
      co_await sandbox_.kernels.server().changed().wait(Clock::time_point::max());
    } else {
      [[maybe_unused]] bool ended = co_await process_->wait_end(seconds(3600));
    }
  }
  lost();
}

Task<void> Kernel::take(jupyter::Incoming message) {
  if (!run_ || message.parent_id != run_->id) co_return;
  // Without events only the beginning and the end count.
  if (!run_->events && message.type != "status") co_return;
  taking_ = true;
  co_await take_output(*run_, std::move(message));
  taking_ = false;
  run_->heard = Clock::now();
  changed_.ring();
}

// A run may go when nothing is on its way to it.
Task<void> Kernel::settle() {
  while (taking_) co_await changed_.wait(Clock::time_point::max());
  run_ = nullptr;
  changed_.ring();
}

Task<void> Kernel::take_output(Run& run, jupyter::Incoming message) {
  if (message.left_out > 0) {
    if (!run.events) co_return;
    std::string note = cat("[a message of ", message.left_out, " bytes from the kernel was left out: write large data to a file]\n");
    run.failed = run.failed || message.type == "error";
    if (run.failed)
      run.error = error_members("Error", note, {});
    else
      run.events->add(output_members("stderr", note));
    co_return;
  }
  auto parsed = co_await jupyter::parse_content(std::move(message.content));
  if (!parsed) co_return;
  const auto& content = *parsed;
  if (message.type == "status") {
    if (text_of(content, "execution_state") == "idle") run.idle = true;
  } else if (message.type == "execute_input") {
    run.begun = true;
    changed_.ring();
  } else if (message.type == "stream") {
    run.begun = true;
    co_await add_stream(run, content);
  } else if (message.type == "execute_result" || message.type == "display_data" || message.type == "update_display_data") {
    add_result(run, content, message.type == "execute_result");
    co_await run.events->room();
  } else if (message.type == "error") {
    run.failed = true;
    run.error = error_members(text_of(content, "ename"), text_of(content, "evalue"), content);
  }
}

Task<void> Kernel::add_stream(Run& run, const boost::json::object& content) {
  std::string_view text = text_of(content, "text");
  std::string_view type = text_of(content, "name") == "stderr" ? "stderr" : "stdout";
  while (!text.empty()) {
    std::size_t size = whole_characters(text, kPieceBytes);
    run.events->add(output_members(type, text.substr(0, size)));
    text.remove_prefix(size);
    co_await run.events->room();
  }
}

void Kernel::add_result(Run& run, const boost::json::object& content, bool counted) {
  auto* data = content.if_contains("data");
  if (!data || !data->is_object() || data->get_object().empty()) return;
  if (auto count = count_of(content); counted && count && !run.counted) {
    run.counted = true;
    run.events->add(count_members(*count));
  }
  run.events->add(result_members(data->get_object()));
}

void Kernel::take_reply(Run& run, const boost::json::object& content) {
  run.count = count_of(content);
  std::string_view status = text_of(content, "status");
  if (status == "ok" || status.empty() || run.failed) return;
  run.failed = true;
  std::string_view name = text_of(content, "ename");
  run.error = error_members(name.empty() ? "ExecutionAborted" : name, text_of(content, "evalue"), content);
}

// ---- runs ----------------------------------------------------------------------------------------------------------

// Also returns when the kernel has died and all it said is out.
Task<void> Kernel::wait_for(Run& run, Clock::time_point until) {
  while (listening_ > 0 && !run.done() && Clock::now() < until) {
    bool half = run.idle || run.replied;
    auto enough = run.heard + (run.interrupted ? Clock::duration(kStragglerOfInterrupted) : kStraggler);
    if (half && !taking_ && Clock::now() >= enough) co_return;
    co_await changed_.wait(half && !taking_ ? std::min(enough, until) : until);
  }
}

Task<void> Kernel::execute(std::string code, CodeEvents& events) {
  auto started = Clock::now();
  Run run;
  run.events = &events;
  run_ = &run;
  auto sent = co_await request(*shell_, "execute_request", run.id, execute_content(code, false));
  if (!sent) lost();
  co_await wait_for(run, Clock::time_point::max());
  co_await settle();
  if (!alive_ && !run.done()) {
    std::string words = co_await obituary();
    co_return events.finish(error_members("KernelDied", words, {}));
  }
  // A signal that meets the kernel itself, not the code, costs the reply.
  if (run.interrupted && !run.replied && !run.failed) {
    run.failed = true;
    run.error = error_members("KeyboardInterrupt", "interrupted before the code began", {});
  }
  if (run.count && !run.counted) events.add(count_members(*run.count));
  if (run.failed) co_return events.finish(std::move(run.error));
  auto millis = std::chrono::duration_cast<milliseconds>(Clock::now() - started).count();
  events.finish(cat(R"("type":"execution_complete","execution_time":)", millis));
}

Task<bool> Kernel::execute_silently(std::string code, Clock::duration patience) {
  Run run;
  run_ = &run;
  auto sent = co_await request(*shell_, "execute_request", run.id, execute_content(code, true));
  if (sent) co_await wait_for(run, Clock::now() + patience);
  co_await settle();
  co_return sent&& run.done() && !run.failed;
}

// Before the kernel has taken the code up it ignores the signal, so that is waited for.
Task<bool> Kernel::interrupt() {
  if (!run_ || !run_->events) co_return false;
  std::string id = run_->id;
  auto same = [&] { return alive_ && run_ && run_->id == id; };
  auto self = shared_from_this();
  auto begin = Clock::now() + kStartOfRun;
  while (same() && !run_->begun && Clock::now() < begin) co_await changed_.wait(begin);
  if (!same()) co_return true;
  run_->interrupted = true;
  if (control_) {
    [[maybe_unused]] auto sent = co_await request(*control_, "interrupt_request", random_hex(16), "{}");
  } else if (process_) {
    process_->signal_group(SIGINT);
  } else if (forked_ && !forked_->end) {
    ::kill(-forked_->pid, SIGINT);
  }
  auto until = Clock::now() + kInterruptPatience;
  while (same() && Clock::now() < until) co_await changed_.wait(until);
  co_return true;
}

// ---- the end -------------------------------------------------------------------------------------------------------

std::optional<std::string> Kernel::how_it_ended() const {
  if (process_ && process_->end()) return describe(*process_->end());
  if (!forked_ || !forked_->end) return std::nullopt;
  int end = *forked_->end;
  ExitStatus status{.cause = end < 0 ? Cause::signalled : Cause::exited, .code = end < 0 ? 128 - end : end, .signal = end < 0 ? -end : 0};
  if (end == -SIGKILL && sandbox_.processes.oom_kills() > oom_kills_before_) status.cause = Cause::out_of_memory;
  return describe(status);
}

bool Kernel::process_ended() const { return how_it_ended().has_value(); }

Task<std::string> Kernel::obituary() {
  auto until = Clock::now() + kLastWords;
  if (process_) {
    [[maybe_unused]] bool ended = co_await process_->wait_end(kLastWords);
  }
  while (forked_ && !process_ended() && Clock::now() < until) co_await sandbox_.kernels.server().changed().wait(until);
  if (stopped_) co_return "the context was deleted while code ran in it";
  std::string words = cat("the ", wish_.language, " kernel died");
  if (auto how = how_it_ended()) words += cat(" (", *how, ")");
  std::string said = said_.read_from(0);
  if (!said.empty()) words += cat("; it said: ", said);
  co_return words += "; its variables are lost, and the next run in this context starts it afresh";
}

void Kernel::stop() {
  if (stopped_) return;
  stopped_ = true;
  alive_ = false;
  if (process_ && process_->running()) process_->kill_all();
  if (forked_ && !forked_->end) kill_tree({forked_->pid, forked_->tag});
  for (auto* peer : {&shell_, &iopub_, &control_})
    if (*peer) (*peer)->close();
  if (!place_.empty()) sandbox_.kernels.folder().clean(place_);
  changed_.ring();
}

}  // namespace osb::execd
