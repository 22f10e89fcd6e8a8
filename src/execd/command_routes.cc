#include "execd/command_routes.h"

#include <errno.h>
#include <unistd.h>

#include <utility>

#include "base/text.h"
#include "execd/collector.h"
#include "execd/events.h"
#include "execd/kernels/routes.h"
#include "execd/replies.h"
#include "execd/run_request.h"
#include "execd/runs/follow.h"
#include "execd/runs/relay.h"
#include "execd/shell/routes.h"

namespace osb::execd {
namespace {

// A command that is over by then is answered whole, in one write, instead of waking everybody on the way three times.
constexpr auto kShortCommand = std::chrono::milliseconds(10);
constexpr std::size_t kUsualEvents = 512;  // bytes
constexpr auto kInterruptGrace = std::chrono::seconds(3);
constexpr auto kInterruptPatience = std::chrono::seconds(10);

bool callers_mistake(const Error& error) { return error.field() == "cwd" || error.field() == "uid" || error.field() == "envs"; }

// A command that could not be started still has an id and a stream, as the protocol wants it.
void keep_start_failure(runs::Run& run, const Error& error) {
  Cause cause = error.kind() == Errc::not_found ? Cause::not_found : Cause::not_started;
  std::string batch;
  events::append_init(batch, run.next_seq(), run.id(), run.id());
  events::append_start_error(batch, run.next_seq(), error.what(), cause);
  run.finish(batch);
}

void keep_background_start(runs::Run& run) {
  std::string batch;
  events::append_init(batch, run.next_seq(), run.id(), run.id());
  events::append_complete(batch, run.next_seq(), 0);
  run.finish(batch);
}

void append_ending(std::string& batch, runs::Run& run, const Process& process) {
  const ExitStatus& status = *process.end();
  if (failed(status)) return events::append_error(batch, run.next_seq(), status, process.elapsed_millis());
  events::append_complete(batch, run.next_seq(), process.elapsed_millis());
}

void finish(std::string& batch, runs::Run& run, Process& process) {
  process.input().reset();  // what the program did not read by now nobody reads
  append_ending(batch, run, process);
  run.finish(batch);
}

// To the command's terminal event, whoever reads them: as soon as its leader has ended and what it wrote is out.
Task<void> produce(Sandbox& sandbox, std::shared_ptr<Process> process, std::shared_ptr<runs::Run> run, runs::Relay relay,
                   std::string batch) {
  co_await relay.to_the_end(batch);
  finish(batch, *run, *process);
  if (process->has_open_pipe()) drain_in_background(sandbox, std::move(process));
}

// From the command's first event on. One that is over in a moment is answered here, whole, and what is left to do for it is
// done behind the answer; the other becomes a task of its own, and its client reads it on.
Task<void> see_through(Sandbox& sandbox, std::shared_ptr<Process> process, std::shared_ptr<runs::Run> run, bool raw,
                       http::Responder& responder) {
  std::string batch;
  batch.reserve(kUsualEvents);
  events::append_init(batch, run->next_seq(), run->id(), run->id());
  runs::Relay relay(*process, *run, raw);
  bool short_one = co_await process->wait_end(kShortCommand);
  if (!short_one || !relay.at_once(batch)) {
    sandbox.tasks.spawn("command", produce(sandbox, std::move(process), run, std::move(relay), std::move(batch)));
    co_return void(co_await runs::follow(std::move(run), responder, 0, true));
  }
  finish(batch, *run, *process);
  co_await runs::follow(std::move(run), responder, 0, true);
  process->out().close_at_end();
  process->err().close_at_end();
  if (process->has_open_pipe()) drain_in_background(sandbox, std::move(process));
  if (!sandbox.processes.expects_more()) co_return;
  co_await give_way();  // to whoever looks whether anybody else is left
  sandbox.processes.prepare_next();
}

// All of a program's standard input, as fast as it reads; then the end of it.
Task<void> feed(std::shared_ptr<Process> process, std::string bytes) {
  auto& input = process->input();
  std::string_view left = bytes;
  while (input && !left.empty()) {
    auto n = ::write(input->native_handle(), left.data(), left.size());
    if (n > 0) {
      left.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      auto [failed] = co_await input->async_wait(asio::posix::descriptor_base::wait_write, nothrow);
      if (failed) break;
    } else if (errno != EINTR) {
      break;  // it closed its end
    }
  }
  input.reset();
}

void append_member(std::string& out, std::string_view name, std::string_view text) {
  out += cat(",\"", name, "\":");
  append_json_string(out, text);
}

std::string status_json(const Command& command) {
  const Process& process = *command.process;
  std::string out = cat("{\"id\":\"", command.id, "\"");
  append_member(out, "content", command.content);
  out += cat(",\"running\":", process.running());
  append_member(out, "started_at", format_rfc3339(process.started_at()));
  if (const auto& end = process.end()) {
    out += cat(",\"exit_code\":", wire_code(*end));
    append_member(out, "finished_at", format_rfc3339(process.ended_at()));
    if (failed(*end)) append_member(out, "error", describe(*end));
    append_member(out, "cause", name_of(end->cause));
  }
  return out += "}";
}

}  // namespace

std::string query_value(const http::Request& request, std::string_view name) {
  auto pairs = http::parse_query(request.query);
  if (!pairs) return {};
  for (auto& [key, value] : *pairs)
    if (key == name) return std::move(value);
  return {};
}

Task<void> run_command(Sandbox& sandbox, http::Request& request, http::Responder& responder) {
  auto body = co_await request.body->read_all(kMaxCommandBody);
  if (!body) co_return co_await reply_bad_request(responder, std::move(body).error());
  runs::Key key;
  bool answered = co_await runs::answer_repeated(sandbox, request, responder, *body, key);
  if (answered) co_return;
  auto asked = parse_command_request(*body);
  if (!asked) co_return co_await reply_bad_request(responder, std::move(asked).error());
  co_await start_command(sandbox, *std::move(asked), std::move(key), responder);
}

Task<void> start_command(Sandbox& sandbox, RunRequest asked, runs::Key key, http::Responder& responder) {
  std::string content = asked.command;
  for (const std::string& word : asked.argv) content += cat(content.empty() ? "" : " ", word);
  bool background = asked.background;
  bool raw = asked.raw;
  auto input = std::exchange(asked.input, {});
  auto start = prepare(sandbox.setup, std::move(asked));
  if (!start) co_return co_await reply_bad_request(responder, std::move(start).error());
  if (sandbox.processes.running() >= Commands::kMaxRunning)
    co_return co_await reply_error(responder, 429, "RUNTIME_ERROR", "256 commands are running; wait for one to end or interrupt it");
  start->merge_output = background;
  start->answer_first = !background;
  auto process = sandbox.processes.start(*start);
  if (!process && callers_mistake(process.error())) co_return co_await reply_bad_request(responder, std::move(process).error());
  auto run = sandbox.runs.add(std::move(key));
  if (!process) {
    keep_start_failure(*run, process.error());
    co_return void(co_await runs::follow(std::move(run), responder));
  }
  auto command = sandbox.commands.add(run->id(), content, *process, background);
  if (background) {
    keep_background_start(*run);
    sandbox.tasks.spawn("collect", collect(std::move(command)));
    co_return void(co_await runs::follow(std::move(run), responder));
  }
  if (input) sandbox.tasks.spawn("input", feed(*process, *std::move(input)));
  co_await see_through(sandbox, *std::move(process), std::move(run), raw, responder);
}

Task<void> interrupt_command(Sandbox& sandbox, http::Request& request, http::Responder& responder) {
  std::string id = query_value(request, "id");
  if (id.empty()) co_return co_await reply_error(responder, 400, "MISSING_QUERY", "the query parameter \"id\" is required");
  if (auto context = sandbox.kernels.find(id)) co_return co_await interrupt_context(std::move(context), responder);
  bool of_session = co_await interrupt_session(sandbox, id);
  if (of_session) co_return co_await reply_empty(responder);
  auto command = sandbox.commands.find(id);
  if (!command || !command->process->running())
    co_return co_await reply_error(responder, 500, "RUNTIME_ERROR", cat("no running command has the id ", json_string(id.substr(0, 80))));
  auto process = command->process;
  process->interrupt(kInterruptGrace);
  bool ended = co_await process->wait_end(kInterruptPatience);
  if (!ended) co_return co_await reply_error(responder, 500, "RUNTIME_ERROR", "the command did not end after SIGKILL");
  co_await reply_empty(responder);
}

Task<void> command_status(Sandbox& sandbox, std::string id, http::Responder& responder) {
  auto command = sandbox.commands.find(id);
  if (!command)
    co_return co_await reply_error(responder, 404, "INVALID_REQUEST_BODY", cat("no command has the id ", json_string(id.substr(0, 80))));
  auto response = http::Response::json(200, status_json(*command));
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
}

Task<void> command_logs(Sandbox& sandbox, std::string id, http::Request& request, http::Responder& responder) {
  auto command = sandbox.commands.find(id);
  if (!command || !command->output)
    co_return co_await reply_error(responder, 400, "INVALID_REQUEST_BODY",
                                   cat("no background command has the id ", json_string(id.substr(0, 80))));
  auto cursor = parse_int<std::uint64_t>(query_value(request, "cursor")).value_or(0);
  command->catch_up();
  const Ring& output = *command->output;
  auto response = http::Response::text(200, output.read_from(cursor));
  response.headers.add("EXECD-COMMANDS-TAIL-CURSOR", cat(output.end()));
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
}

}  // namespace osb::execd
