#include "base/log.h"
#include "base/text.h"
#include "session/live.h"

namespace osb::session {

// A create whose asker may be cancelled meanwhile: then what was made is ended by whoever made it.
struct LiveService::Making {
  explicit Making(Executor executor) : done(executor, Timer::time_point::max()) {}
  std::optional<Result<lifecycle::Created>> made;
  bool abandoned = false;
  Timer done;
};

// Leaving the scope ends the sandbox, whatever the reason for leaving is.
struct LiveService::RunEnd {
  RunEnd(LiveService& service, std::shared_ptr<Making> making, Caller caller)
      : service_(service), making_(std::move(making)), caller_(std::move(caller)) {}
  RunEnd(const RunEnd&) = delete;
  RunEnd& operator=(const RunEnd&) = delete;
  ~RunEnd() {
    if (settled) return;
    making_->abandoned = true;
    if (making_->made && *making_->made && !(*making_->made)->replayed)
      service_.endings_.spawn("end run", service_.end_run((*making_->made)->sandbox.id, std::move(caller_)));
  }
  bool settled = false;

 private:
  LiveService& service_;
  std::shared_ptr<Making> making_;
  Caller caller_;
};

Task<void> LiveService::make_for_run(std::shared_ptr<Making> making, CreateRequest request, std::string key, std::string print,
                                     Caller caller) {
  auto made = co_await make(std::move(request), kRun, std::move(key), std::move(print), caller);
  if (made && making->abandoned && !made->replayed) co_await end_run(made->sandbox.id, std::move(caller));
  making->made.emplace(std::move(made));
  making->done.cancel();
}

Task<void> LiveService::end_run(SandboxId id, Caller caller) {
  auto ended = co_await lifecycle_.destroy(id, std::move(caller));
  if (!ended && ended.error().kind() != Errc::not_found)
    log::error("run not ended", {{"session", id.text()}, {"error", ended.error().what()}});
}

Task<Result<>> LiveService::run(CreateRequest session, ExecRequest request, std::string idempotency_key, Caller caller, EventSink& sink) {
  if (auto fine = check(request); !fine) co_return std::move(fine).error();
  auto print = fingerprint(session, request);
  auto making = std::make_shared<Making>(tasks_.executor());
  RunEnd end(*this, making, caller);
  endings_.spawn("make run", make_for_run(making, std::move(session), std::move(idempotency_key), std::move(print), caller));
  while (!making->made) co_await making->done.async_wait(nothrow);
  if (!*making->made) co_return std::move(*making->made).error();
  if ((*making->made)->replayed)
    co_return Error(Errc::conflict, "A run with this Idempotency-Key is under way.")
        .with_code("IDEMPOTENCY::IN_PROGRESS")
        .at("Idempotency-Key")
        .with_hint("Wait for its answer; it does not run twice.");
  auto id = (*making->made)->sandbox.id;
  auto ready = co_await await_image((*making->made)->sandbox, caller);
  Result<> done = Ok{};
  if (ready)
    done = co_await exec(id, std::move(request), caller, sink);
  else
    done = std::move(ready).error();
  co_await end_run(id, std::move(caller));
  end.settled = true;
  co_return done;
}

}  // namespace osb::session
