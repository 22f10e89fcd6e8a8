// Pause and resume are one movement in two directions: a table row each, one function for both.
#include "base/log.h"
#include "base/text.h"
#include "lifecycle/errors.h"
#include "lifecycle/service.h"
#include "lifecycle/shield.h"

namespace osb::lifecycle {

struct Service::Turn {
  std::string_view action;
  State from, through, to;
  Task<Result<>> (runtime::Runtime::*act)(SandboxId);
  std::string_view wrong_state_code, failed_code;
  std::string_view from_reason, from_message, to_reason, to_message;
};

namespace {

constexpr std::string_view kRunning = "CONTAINER_RUNNING";
constexpr std::string_view kRunningText = "The sandbox is running.";
constexpr std::string_view kPaused = "CONTAINER_PAUSED";
constexpr std::string_view kPausedText = "Every process of the sandbox is frozen.";

Error wrong_state(const Sandbox& sandbox, std::string_view needed, std::string_view code) {
  return Error(Errc::conflict, cat("sandbox ", sandbox.id.text(), " is ", name_of(sandbox.status.state), ", not ", needed)).with_code(code);
}

}  // namespace

Task<Result<>> Service::pause(SandboxId id, Caller caller) {
  static const Turn kPause{"sandbox.pause",
                           State::running,
                           State::pausing,
                           State::paused,
                           &runtime::Runtime::pause,
                           "DOCKER::SANDBOX_NOT_RUNNING",
                           "DOCKER::SANDBOX_PAUSE_FAILED",
                           kRunning,
                           kRunningText,
                           kPaused,
                           kPausedText};
  if (!runtime_.capabilities().pause)
    co_return Error(Errc::unsupported, "this runtime cannot pause sandboxes").with_code("SANDBOX::API_NOT_SUPPORTED");
  auto work = turn(std::move(id), std::move(caller), kPause);
  co_return co_await shield(tasks_, "pause sandbox", std::move(work));
}

Task<Result<>> Service::resume(SandboxId id, Caller caller) {
  static const Turn kResume{"sandbox.resume",
                            State::paused,
                            State::resuming,
                            State::running,
                            &runtime::Runtime::resume,
                            "DOCKER::SANDBOX_NOT_PAUSED",
                            "DOCKER::SANDBOX_RESUME_FAILED",
                            kPaused,
                            kPausedText,
                            kRunning,
                            kRunningText};
  auto work = turn(std::move(id), std::move(caller), kResume);
  co_return co_await shield(tasks_, "resume sandbox", std::move(work));
}

Task<Result<>> Service::turn(SandboxId id, Caller caller, const Turn& turn) {
  CO_TRY(auto* entry, owned(id, caller));
  if (entry->sandbox.status.state != turn.from) co_return wrong_state(entry->sandbox, name_of(turn.from), turn.wrong_state_code);
  if (auto moved = move_to(entry->sandbox, turn.through, "", ""); !moved) co_return std::move(moved).error();
  auto done = co_await (runtime_.*turn.act)(id);
  auto settled = settle(id, turn, std::move(done));
  if (!settled) {
    note_failure(caller, std::string(turn.action), id.text(), settled.error());
    co_return settled;
  }
  auto recorded = record(caller, std::string(turn.action), id.text());
  if (!recorded) co_await undo(id, turn);
  co_return recorded;
}

// The runtime has answered; the sandbox may have ended or left meanwhile.
Result<> Service::settle(const SandboxId& id, const Turn& turn, Result<> done) {
  auto* entry = table_.find(id.text());
  if (entry == nullptr) return unknown_sandbox(id);
  auto& sandbox = entry->sandbox;
  if (sandbox.status.state != turn.through) return wrong_state(sandbox, name_of(turn.from), turn.wrong_state_code);
  if (done) return move_to(sandbox, turn.to, std::string(turn.to_reason), std::string(turn.to_message));
  CHECK_OK(move_to(sandbox, turn.from, std::string(turn.from_reason), std::string(turn.from_message)));
  return coded(std::move(done).error(), turn.failed_code).in(turn.action);
}

// It happened but could not be recorded, so it is taken back.
Task<void> Service::undo(SandboxId id, const Turn& turn) {
  bool was_pause = turn.to == State::paused;
  if (auto* entry = table_.find(id.text())) {
    if (auto moved = move_to(entry->sandbox, was_pause ? State::resuming : State::pausing, "", ""); !moved) co_return;
  }
  Result<> back = Ok{};
  if (was_pause) {
    back = co_await runtime_.resume(id);
  } else {
    back = co_await runtime_.pause(id);
  }
  auto* entry = table_.find(id.text());
  if (entry == nullptr) co_return;
  auto& sandbox = entry->sandbox;
  if (sandbox.status.state != State::resuming && sandbox.status.state != State::pausing) co_return;
  Result<> moved = back ? move_to(sandbox, turn.from, std::string(turn.from_reason), std::string(turn.from_message))
                        : move_to(sandbox, turn.to, std::string(turn.to_reason), std::string(turn.to_message));
  if (!back)
    log::error("unrecorded change not taken back", {{"action", turn.action}, {"sandbox", id.text()}, {"error", back.error().what()}});
  if (!moved) log::error("state not restored", {{"sandbox", id.text()}, {"error", moved.error().what()}});
}

}  // namespace osb::lifecycle
