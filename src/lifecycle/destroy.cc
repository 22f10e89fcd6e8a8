#include "base/text.h"
#include "lifecycle/errors.h"
#include "lifecycle/service.h"
#include "lifecycle/shield.h"

namespace osb::lifecycle {

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
    set_leaving(*entry, Leaving::no);
    auto error = coded(std::move(gone).error(), "DOCKER::SANDBOX_DELETE_FAILED").in("delete sandbox");
    note_failure(caller, "sandbox.delete", id.text(), error);
    co_return error;
  }
  remove(id.text());
  co_return Ok{};
}

}  // namespace osb::lifecycle
