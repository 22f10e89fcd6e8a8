#include <chrono>
#include <cmath>

#include "base/base64.h"
#include "base/log.h"
#include "base/text.h"
#include "model/json.h"
#include "session/live.h"

namespace osb::session {
namespace {

constexpr std::size_t kBlock = 64 * 1024;
constexpr auto kEndTold = std::chrono::seconds(3);  // how long the news of a sandbox's end may follow its connections' end
constexpr std::size_t kMaxRefusal = 16 * 1024;
constexpr auto kCodeGrace = std::chrono::seconds(3);

void add_env(std::string& body, std::string_view name, const StringMap& env) {
  if (env.empty()) return;
  body += cat(",\"", name, "\":");
  append_json_map(body, env);
}

// Rounded up: a time that is more than nothing never becomes execd's word for "none".
std::int64_t millis_of(double seconds) { return static_cast<std::int64_t>(std::ceil(seconds * 1000)); }

http::ClientRequest command_request(const ExecRequest& request) {
  std::string body = "{";
  if (request.argv.empty()) {
    body += "\"command\":";
    append_json_string(body, request.command);
  } else {
    body += "\"argv\":";
    append_json_list(body, request.argv);
  }
  body += ",\"raw\":true";
  if (!request.cwd.empty()) body += cat(",\"cwd\":", json_string(request.cwd));
  if (request.timeout_seconds) body += cat(",\"timeout\":", millis_of(*request.timeout_seconds));
  add_env(body, "envs", request.env);
  if (request.input) {
    body += ",\"input\":\"";
    append_base64(body, *request.input);
    body += '"';
  }
  auto out = to_execd("POST", "/command");
  out.body = std::move(body) + "}";
  return out;
}

http::ClientRequest code_request(const ExecRequest& request) {
  auto out = to_execd("POST", "/code");
  out.body = cat("{\"code\":", json_string(request.code),
                 ",\"raw\":true,\"context\":{\"language\":", json_string(to_lower(request.language)), "}}");
  return out;
}

Error no_such_exec(std::string_view id) {
  return Error(Errc::not_found, cat("There is no command ", id.substr(0, 80), " in this session, or it is no longer remembered."))
      .with_code("EXEC::NOT_FOUND");
}

}  // namespace

http::ClientRequest to_execd(std::string method, std::string target) {
  http::ClientRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  return request;
}

// What execd says is a claim and may be anything: one short line of it is passed on.
Task<Error> refusal_of(proxy::Exchange& exchange, std::string_view not_found) {
  int status = exchange.status();
  auto body = co_await exchange.read_all(kMaxRefusal);
  auto object = body ? parse_json_object(*body) : Result<boost::json::object>(boost::json::object());
  std::string message;
  if (object && object->contains("message") && object->at("message").is_string())
    message = std::string_view(object->at("message").get_string()).substr(0, 1024);
  if (message.empty()) message = cat("execd answers ", status);
  if (status == 404) co_return Error(Errc::not_found, std::move(message)).with_code(not_found);
  if (status == 400) co_return Error(Errc::invalid_argument, std::move(message)).with_code("SESSION::INVALID_PARAMETER");
  if (status == 413) co_return Error(Errc::too_large, std::move(message)).with_code("SESSION::TOO_LARGE");
  if (status == 409) co_return Error(Errc::conflict, std::move(message)).with_code("EXEC::BUSY");
  if (status == 429) co_return Error(Errc::exhausted, std::move(message)).with_code("EXEC::TOO_MANY");
  if (status == 507)
    co_return Error(Errc::exhausted, std::move(message)).with_code("FILE::NO_SPACE").with_hint("Ask for a larger resources.disk_mb.");
  co_return Error(Errc::internal, std::move(message)).with_code("SESSION::EXECD_FAILED");
}

// One event stream and what is kept while it is read, also when nobody reads it any more.
struct LiveService::Delivery {
  Delivery(LiveService& service, SandboxId session, bool is_code, std::unique_ptr<proxy::Exchange> from)
      : use(service, session), id(std::move(session)), reader(id.text(), is_code), exchange(std::move(from)) {}
  Use use;
  SandboxId id;
  EventReader reader;
  std::unique_ptr<proxy::Exchange> exchange;
  std::string block = std::string(kBlock, '\0');
  std::uint64_t after = 0;  // a reader that comes back has everything up to this number
  bool ended = false;
  std::string exec_id;
  std::int64_t begun_nanos = boot_now_nanos();
  std::shared_ptr<CodeWatch> watch;
};

// The time of a code run, which execd does not keep itself.
struct LiveService::CodeWatch {
  CodeWatch(Executor executor, SandboxId session, Caller who) : timer(executor), id(std::move(session)), caller(std::move(who)) {}
  Timer timer;
  SandboxId id;
  Caller caller;
  std::chrono::nanoseconds limit{};
  std::string context;
  bool timed_out = false;
  bool over = false;
};

Task<Result<std::unique_ptr<proxy::Exchange>>> LiveService::ask(SandboxId id, http::ClientRequest request, Caller caller,
                                                                proxy::Asking asking) {
  auto asked = co_await proxy_.ask_execd(id, std::move(request), caller, std::move(asking));
  if (asked) co_return asked;
  bool cut_off = asked.error().kind() == Errc::unavailable && asked.error().code().empty();
  if (!cut_off || running(id, caller)) co_return std::move(asked).error();
  // It was there when the request went out.
  co_return Error(Errc::conflict, cat("Session ", id.text(), " ended before it answered; what was asked of it may have begun."))
      .with_code("SESSION::ENDED")
      .with_hint("Make a new session.");
}

Task<Result<>> LiveService::exec(SandboxId id, ExecRequest request, Caller caller, EventSink& sink) {
  CO_TRY([[maybe_unused]] auto sandbox, running(id, caller));
  if (auto fine = check(request); !fine) co_return std::move(fine).error();
  Use use(*this, id);
  bool is_code = !request.code.empty();
  auto outgoing = is_code ? code_request(request) : command_request(request);
  CO_TRY(auto exchange, co_await ask_held(id, std::move(outgoing), caller, sink));
  if (exchange->status() == 500 && is_code) {
    auto refused = co_await refusal_of(*exchange, "EXEC::NOT_FOUND");
    co_return Error(Errc::malformed, refused.what())
        .with_code("CODE::LANGUAGE_MISSING")
        .at("language")
        .with_hint("Use an image that has it.");
  }
  if (exchange->status() != 200) co_return co_await refusal_of(*exchange, "EXEC::NOT_FOUND");
  auto delivery = std::make_unique<Delivery>(*this, id, is_code, std::move(exchange));
  if (is_code && request.timeout_seconds) {
    delivery->watch = std::make_shared<CodeWatch>(tasks_.executor(), id, std::move(caller));
    delivery->watch->limit = std::chrono::milliseconds(millis_of(*request.timeout_seconds));
    tasks_.spawn("limit code", limit_code(delivery->watch));
  }
  co_return co_await deliver(std::move(delivery), sink);
}

Task<Result<>> LiveService::resume(SandboxId id, std::string exec_id, std::uint64_t after, Caller caller, EventSink& sink) {
  CO_TRY([[maybe_unused]] auto sandbox, running(id, caller));
  auto name = parse_exec_id(exec_id);
  if (!name) co_return no_such_exec(exec_id);
  Use use(*this, id);
  auto outgoing = to_execd("GET", cat("/osb/v1/runs/", name->run, "/events?since=", after));
  CO_TRY(auto exchange, co_await ask(id, std::move(outgoing), std::move(caller)));
  if (exchange->status() == 404) co_return no_such_exec(exec_id);
  if (exchange->status() != 200) co_return co_await refusal_of(*exchange, "EXEC::NOT_FOUND");
  auto delivery = std::make_unique<Delivery>(*this, id, !name->context.empty(), std::move(exchange));
  delivery->after = after;
  co_return co_await deliver(std::move(delivery), sink);
}

// The next event, the end of a session among them; nullopt at the end of the stream.
Task<Result<std::optional<ExecEvent>>> LiveService::next_event(Delivery& delivery) {
  for (;;) {
    auto event = delivery.reader.next();
    if (!event || *event) co_return event;
    auto read = co_await delivery.exchange->read_some(delivery.block);
    if (read && *read > 0) {
      delivery.reader.feed({delivery.block.data(), *read});
      continue;
    }
    if (delivery.ended) co_return std::optional<ExecEvent>();
    CO_TRY(auto exit,
           co_await broken_off(delivery.id, read ? Error(Errc::unavailable, "the stream ended early") : std::move(read).error()));
    co_return ExecEvent{delivery.reader.last_seq() + 1, std::move(exit)};
  }
}

// Code that ends because it was told to says only that it was interrupted.
Task<Result<>> LiveService::deliver(std::unique_ptr<Delivery> delivery, EventSink& sink) {
  struct Over {
    std::shared_ptr<CodeWatch> watch;
    ~Over() {
      if (!watch) return;
      watch->over = true;
      watch->timer.cancel();
    }
  } over{delivery->watch};
  for (;;) {
    CO_TRY(auto event, co_await next_event(*delivery));
    if (!event) co_return Ok{};
    auto* started = std::get_if<Started>(&event->what);
    if (started) delivery->exec_id = started->exec_id;
    if (started && delivery->watch) delivery->watch->context = delivery->reader.context();
    if (auto* exit = std::get_if<Exit>(&event->what)) {
      delivery->ended = true;
      // execd does not time code that raises.
      if (exit->error && delivery->after == 0) exit->duration_ms = static_cast<double>(boot_now_nanos() - delivery->begun_nanos) / 1e6;
      if (interrupted_.erase(delivery->exec_id) > 0 && exit->exit_code != 0) exit->cause = Cause::interrupted;
      if (delivery->watch && delivery->watch->timed_out) {
        exit->cause = Cause::timed_out;
        exit->exit_code = 124;
        exit->advice = "The code was stopped when its time was over: give it a longer timeout_seconds.";
      }
    }
    bool ended = delivery->ended;
    auto taking = std::holds_alternative<Silence>(event->what) ? sink.still() : sink.take(*std::move(event));
    auto taken = co_await std::move(taking);
    if (!taken && !ended) {
      over.watch.reset();  // the time still counts
      tasks_.spawn("command without a reader", drain(std::move(delivery)));
    }
    if (!taken) co_return std::move(taken).error();
  }
}

// Read on, so that the session stays in use and the end is on record; what it writes is kept by execd for whoever comes back.
Task<void> LiveService::drain(std::unique_ptr<Delivery> delivery) {
  for (;;) {
    auto event = co_await next_event(*delivery);
    if (!event || !*event) break;
    if (std::holds_alternative<Exit>((*event)->what)) delivery->ended = true;
  }
  interrupted_.erase(delivery->exec_id);
  if (!delivery->watch) co_return;
  delivery->watch->over = true;
  delivery->watch->timer.cancel();
}

// The connection to execd ended before the command did. As a rule its sandbox did, and the news of that are on their way.
Task<Result<Exit>> LiveService::broken_off(SandboxId id, Error why) {
  Caller self{"system", true, ""};
  auto until = std::chrono::steady_clock::now() + kEndTold;
  auto state = running(id, self);
  while (state && std::chrono::steady_clock::now() < until && !stopping_) {
    ended_.expires_at(until);
    co_await ended_.async_wait(nothrow);
    state = running(id, self);
  }
  if (state) co_return Error(Errc::unavailable, cat("What became of the command is not known: ", why.what())).with_code("EXEC::LOST");
  Exit exit{.exit_code = 137, .cause = Cause::session_ended, .advice = "The session ended while the command ran."};
  const auto* record = lifecycle_.find(id);
  if (record && record->status.reason == "OOMKilled") {
    exit.cause = Cause::out_of_memory;
    exit.advice = "The session reached its memory limit and was ended: use less memory or ask for a larger resources.memory_mb.";
  }
  co_return exit;
}

// ---- stopping ------------------------------------------------------------------------------------------------------

Task<Result<>> LiveService::interrupt(SandboxId id, std::string exec_id, Caller caller) {
  CO_TRY([[maybe_unused]] auto sandbox, running(id, caller));
  auto name = parse_exec_id(exec_id);
  if (!name) co_return no_such_exec(exec_id);
  Use use(*this, id);
  if (name->context.empty()) {
    // execd does not tell a command that has ended from one it never knew.
    auto question = to_execd("GET", cat("/command/status/", name->run));
    CO_TRY(auto known, co_await ask(id, std::move(question), caller));
    if (known->status() == 404) co_return no_such_exec(exec_id);
    [[maybe_unused]] auto rest = co_await known->read_all(kBlock * 4);
  } else {
    interrupted_.insert(exec_id);
  }
  auto what = name->context.empty() ? cat("/command?id=", name->run) : cat("/code?id=", name->context);
  auto order = to_execd("DELETE", std::move(what));
  CO_TRY(auto told, co_await ask(id, std::move(order), std::move(caller)));
  [[maybe_unused]] auto rest = co_await told->read_all(kMaxRefusal);
  if (told->status() != 200) interrupted_.erase(exec_id);
  co_return Ok{};  // 500: nothing runs under this id any more
}

Task<void> LiveService::limit_code(std::shared_ptr<CodeWatch> watch) {
  watch->timer.expires_after(watch->limit);
  co_await watch->timer.async_wait(nothrow);
  if (watch->over || watch->context.empty() || stopping_) co_return;
  watch->timed_out = true;
  co_await stop_code(watch->id, watch->context, false, watch->caller);
  if (watch->over) co_return;
  watch->timer.expires_after(kCodeGrace);
  co_await watch->timer.async_wait(nothrow);
  if (!watch->over && !stopping_) co_await stop_code(watch->id, watch->context, true, watch->caller);
}

// An interrupt first, which leaves variables alone; then the whole context.
Task<void> LiveService::stop_code(SandboxId id, std::string context, bool hard, Caller caller) {
  auto order = to_execd("DELETE", hard ? cat("/code/contexts/", context) : cat("/code?id=", context));
  auto told = co_await ask(std::move(id), std::move(order), std::move(caller));
  if (told) [[maybe_unused]]
    auto rest = co_await (*told)->read_all(kMaxRefusal);
}

}  // namespace osb::session
