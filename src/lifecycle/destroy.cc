#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "lifecycle/errors.h"
#include "lifecycle/service.h"
#include "lifecycle/shield.h"

namespace osb::lifecycle {
namespace {

constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{10'000};

}  // namespace

Task<Result<>> Service::destroy(SandboxId id, Caller caller) {
  auto work = destroy_shielded(std::move(id), std::move(caller));
  co_return co_await shield(tasks_, "delete sandbox", std::move(work));
}

// Recorded first: what cannot be taken back must not happen unrecorded.
Task<Result<>> Service::destroy_shielded(SandboxId id, Caller caller) {
  CO_TRY(auto* entry, owned(id, caller));
  // A Pending one is not the runtime's yet; should it be on its way there, start_pending takes it back.
  bool absent = is_finished(entry->sandbox.status.state) || entry->sandbox.status.state == State::pending;
  Details detail{{"state", std::string(name_of(entry->sandbox.status.state))}};
  if (auto recorded = record(caller, "sandbox.delete", id.text(), std::move(detail)); !recorded) co_return std::move(recorded).error();
  set_leaving(*entry, Leaving::deleted);
  Result<> gone = Ok{};
  if (!absent) gone = co_await runtime_.destroy(id);
  entry = table_.find(id.text());
  if (entry == nullptr) co_return Ok{};  // its end was told meanwhile
  if (!gone && gone.error().kind() != Errc::not_found) {
    auto error = coded(std::move(gone).error(), "DOCKER::SANDBOX_DELETE_FAILED").in("delete sandbox");
    note_failure(caller, "sandbox.delete", id.text(), error);
    keep_ending(*entry);
    co_return std::move(error).with_hint("The server goes on trying to end it; deleting it again does no harm.");
  }
  remove(id.text());
  co_return Ok{};
}

// The runtime did not say that it is gone, so it is shown as what it is. Its record goes now: should we be started again in between,
// reconciliation finds a sandbox that nobody knows, and ends it.
void Service::keep_ending(Entry& entry) {
  const auto& id = entry.sandbox.id;
  set_leaving(entry, Leaving::no);
  if (auto erased = store_.erase(id); !erased) log::error("record not erased", {{"sandbox", id.text()}, {"error", erased.error().what()}});
  if (std::exchange(entry.ending, true)) return;  // somebody is at it
  auto moved =
      move_to(entry.sandbox, State::stopping, "DELETE_RETRIED", "It was deleted and has not ended yet; the server goes on trying.");
  if (!moved) log::error("state not set", {{"sandbox", id.text()}, {"error", moved.error().what()}});
  tasks_.spawn("end sandbox", end_until_gone(id));
}

// For what nobody waits for any more. It is never given up: what lives and is in no list, or cannot be deleted, would live for ever.
Task<void> Service::end_until_gone(SandboxId id) {
  Result<> gone = Error(Errc::unavailable, "not asked yet");
  for (auto pause = kFirstPause; !stopping_; pause = std::min(pause * 2, kLongestPause)) {
    co_await sleep_for(pause);
    gone = co_await runtime_.destroy(id);
    if (gone || gone.error().kind() == Errc::not_found) break;
    log::error("sandbox not destroyed, will try again", {{"sandbox", id.text()}, {"error", gone.error().what()}});
  }
  const auto* entry = table_.find(id.text());
  if (stopping_ || entry == nullptr || !entry->ending || entry->leaving != Leaving::no) co_return;
  remove(id.text());
  note("sandbox.delete", id.text(), {{"state", "Stopping"}});
}

}  // namespace osb::lifecycle
