#include "session/live.h"

#include <chrono>

#include "base/log.h"
#include "base/text.h"

namespace osb::session {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(100);  // whether an image has come
constexpr auto kLastWork = std::chrono::seconds(10);         // for what must be ended before the daemon does
constexpr std::int64_t kNanos = 1'000'000'000;

Error unknown_session(std::string_view id) {
  return Error(Errc::not_found, cat("There is no session ", id, "."))
      .with_code("SESSION::NOT_FOUND")
      .with_hint("It may have ended: make a new one.");
}

bool is_finished(State state) { return state == State::terminated || state == State::failed; }

std::string_view mark_of(const Sandbox& sandbox) {
  auto found = sandbox.spec.extensions.find(kMark);
  return found == sandbox.spec.extensions.end() ? std::string_view() : std::string_view(found->second);
}

// The names this API gives things, and its statuses: a full server is "too many", as the caller's own bound is.
Error as_session_error(Error error) {
  auto code = error.code();
  auto hint = error.hint();
  auto field = error.field();
  if (code == "DOCKER::SANDBOX_NOT_FOUND") code = "SESSION::NOT_FOUND";
  if (field == "image.uri") field = "image";
  if (field == "timeout") field = "resources.timeout_seconds";
  if (field == "extensions.opensandbox.syscalls") field = "security.syscall_allowlist";
  auto kind = code == "SANDBOX::LIMIT_REACHED" ? Errc::exhausted : error.kind();
  return Error(kind, error.what(), error.sys()).with_code(code).at(field).with_hint(hint);
}

Error image_failed(const Sandbox& sandbox) {
  return Error(Errc::unavailable, cat("The image ", sandbox.spec.image, " could not be had: ", sandbox.status.message))
      .with_code("SESSION::IMAGE_UNAVAILABLE")
      .at("image");
}

}  // namespace

LiveService::LiveService(asio::io_context& io, lifecycle::Service& lifecycle, proxy::Proxy& proxy, Options options)
    : lifecycle_(lifecycle),
      proxy_(proxy),
      options_(std::move(options)),
      idle_timer_(io.get_executor()),
      ended_(io.get_executor(), Timer::time_point::max()),
      tasks_(io.get_executor()),
      endings_(io.get_executor()) {}

LiveService::Use::Use(LiveService& service, const SandboxId& id) : service_(&service), id_(id.text()) { service_->idle_.begin(id_); }

LiveService::Use::~Use() {
  if (service_ == nullptr) return;
  service_->idle_.end(id_, boot_now_nanos());
  service_->idle_timer_.cancel();
}

// ---- start, stop, the watch over idle ones -----------------------------------------------------------------------

Task<void> LiveService::start() {
  Caller self{"system", true, ""};
  auto now = boot_now_nanos();
  for (const Sandbox& sandbox : lifecycle_.list({{}, {}, std::string(kMark)}, 1, 1'000'000, self).items) {
    if (mark_of(sandbox) == kRun)
      co_await end_leftover(sandbox.id);
    else if (mark_of(sandbox) == kEphemeral)
      idle_.add(sandbox.id.text(), now);
  }
  tasks_.spawn("watch idle sessions", watch_idle());
}

// Nobody waits for the answer of a run whose daemon has died.
Task<void> LiveService::end_leftover(SandboxId id) {
  Caller system{"system", true, ""};
  auto ended = co_await lifecycle_.destroy(id, std::move(system));
  if (ended) co_return log::info("ended a run that outlived its daemon", {{"session", id.text()}});
  log::error("run not ended", {{"session", id.text()}, {"error", ended.error().what()}});
}

Task<void> LiveService::stop() {
  stopping_ = true;
  idle_timer_.cancel();
  ended_.cancel();
  co_await tasks_.stop();
  co_await endings_.wait_idle(kLastWork);
  co_await endings_.stop();
}

void LiveService::set_options(Options options) {
  options_ = std::move(options);
  idle_timer_.cancel();
}

void LiveService::on_ended(const SandboxId& id) {
  idle_.remove(id.text());
  ended_.cancel();
}

Task<void> LiveService::watch_idle() {
  while (!stopping_) {
    auto patience = options_.idle_seconds * kNanos;
    auto oldest = idle_.oldest();
    auto wait =
        oldest ? std::chrono::nanoseconds(std::max<std::int64_t>(0, *oldest + patience - boot_now_nanos())) : std::chrono::hours(24);
    idle_timer_.expires_after(wait);
    co_await idle_timer_.async_wait(nothrow);
    auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) co_return;
    for (const auto& id : idle_.take(boot_now_nanos() - options_.idle_seconds * kNanos))
      tasks_.spawn("end idle session", end_idle(*SandboxId::parse(id)));
  }
}

Task<void> LiveService::end_idle(SandboxId id) {
  log::info("session ends for idleness", {{"session", id.text()}});
  Caller idle{"idle", true, ""};
  auto ended = co_await lifecycle_.destroy(id, std::move(idle));
  if (!ended && ended.error().kind() != Errc::not_found)
    log::error("idle session not ended", {{"session", id.text()}, {"error", ended.error().what()}});
}

// ---- one session ---------------------------------------------------------------------------------------------------

Result<Sandbox> LiveService::owned(const SandboxId& id, const Caller& caller) const {
  auto sandbox = lifecycle_.get(id, caller);
  if (!sandbox || mark_of(*sandbox).empty()) return unknown_session(id.text());
  return sandbox;
}

Result<Sandbox> LiveService::running(const SandboxId& id, const Caller& caller) const {
  TRY(auto sandbox, owned(id, caller));
  auto state = sandbox.status.state;
  if (state == State::running) return sandbox;
  if (is_finished(state))
    return Error(Errc::conflict, cat("Session ", id.text(), " has ended: ", sandbox.status.message))
        .with_code("SESSION::ENDED")
        .with_hint("Make a new session.");
  return Error(Errc::conflict, cat("Session ", id.text(), " is ", to_lower(osb::name_of(state)), "."))
      .with_code("SESSION::NOT_RUNNING")
      .with_hint(state == State::paused ? "Resume its sandbox first." : "Try again in a moment.");
}

Session LiveService::describe(Sandbox sandbox) const {
  Session session{.sandbox = std::move(sandbox)};
  session.ephemeral = mark_of(session.sandbox) != kKept;
  session.runtime = options_.rules.runtime;
  return session;
}

Task<Result<lifecycle::Created>> LiveService::make(CreateRequest request, std::string_view mark, std::string key, std::string print,
                                                   Caller caller) {
  CO_TRY(auto spec, plan(request, options_.rules));
  if (!mark.empty()) spec.extensions.insert_or_assign(std::string(kMark), std::string(mark));
  if (key.empty()) {
    auto made = co_await lifecycle_.create(std::move(spec), std::move(caller));
    if (!made) co_return as_session_error(std::move(made).error());
    co_return lifecycle::Created{*std::move(made), false};
  }
  if (!lifecycle::is_idempotency_key(key)) co_return invalid("Idempotency-Key", "must be 1 to 128 characters out of A-Z a-z 0-9 . _ : -");
  lifecycle::CreateOnce once{std::move(key), std::move(print)};
  auto made = co_await lifecycle_.create_once(std::move(spec), std::move(once), std::move(caller));
  if (!made) co_return as_session_error(std::move(made).error());
  co_return made;
}

Task<Result<Session>> LiveService::create(CreateRequest request, std::string idempotency_key, Caller caller) {
  auto print = fingerprint(request);
  CO_TRY(auto made, co_await make(std::move(request), {}, std::move(idempotency_key), std::move(print), caller));
  CO_TRY(auto sandbox, co_await await_image(std::move(made.sandbox), std::move(caller)));
  if (mark_of(sandbox) == kEphemeral) {
    idle_.add(sandbox.id.text(), boot_now_nanos());
    idle_timer_.cancel();
  }
  auto session = describe(std::move(sandbox));
  session.replayed = made.replayed;
  co_return session;
}

// An image that has to be pulled first makes a sandbox that is pending; a session is answered when it runs.
Task<Result<Sandbox>> LiveService::await_image(Sandbox sandbox, Caller caller) {
  while (sandbox.status.state == State::pending) {
    co_await sleep_for(kLookAgain);
    CO_TRY(sandbox, owned(sandbox.id, caller));
  }
  if (sandbox.status.state != State::failed) co_return sandbox;
  auto error = image_failed(sandbox);
  [[maybe_unused]] auto gone = co_await lifecycle_.destroy(sandbox.id, std::move(caller));
  co_return error;
}

Task<Result<Session>> LiveService::get(SandboxId id, Caller caller) {
  CO_TRY(auto sandbox, owned(id, caller));
  auto state = sandbox.status.state;
  auto session = describe(std::move(sandbox));
  if (is_finished(state) || state == State::pending) co_return session;
  auto measured = co_await lifecycle_.measure(id);
  if (!measured) co_return session;
  const auto& usage = measured->usage;
  session.usage = Session::Usage{.cpu_seconds = static_cast<double>(usage.cpu_nanos) / 1e9,
                                 .memory_bytes = measured->memory_used_bytes,
                                 .memory_peak_bytes = usage.memory_peak_bytes,
                                 .disk_bytes = usage.disk_bytes,
                                 .pids = usage.pids};
  co_return session;
}

Result<SessionPage> LiveService::list(std::size_t page, std::size_t page_size, const Caller& caller) const {
  if (page < 1 || page > 1'000'000'000) return invalid("page", "must be from 1 to 1000000000");
  if (page_size < 1 || page_size > 1000) return invalid("page_size", "must be from 1 to 1000");
  auto listing = lifecycle_.list({{}, {}, std::string(kMark)}, page, page_size, caller);
  SessionPage out;
  out.total = listing.total;
  for (auto& sandbox : listing.items) out.sessions.push_back(describe(std::move(sandbox)));
  return out;
}

Task<Result<>> LiveService::destroy(SandboxId id, Caller caller) {
  CO_TRY([[maybe_unused]] auto sandbox, owned(id, caller));
  idle_.remove(id.text());
  auto gone = co_await lifecycle_.destroy(id, std::move(caller));
  if (!gone) co_return as_session_error(std::move(gone).error());
  proxy_.gate().forget(id);
  co_return Ok{};
}

}  // namespace osb::session
