#include "base/log.h"
#include "base/text.h"
#include "lifecycle/outcome.h"
#include "lifecycle/service.h"

namespace osb::lifecycle {

void Service::on_ended(const runtime::Ended& ended) {
  const auto& id = ended.id.text();
  if (!started_) {
    early_.push_back(ended);
    return;
  }
  if (auto making = making_.find(id); making != making_.end()) {
    making->second.ended = ended;
    return;
  }
  if (spares_.ended(ended.id)) return;
  auto* entry = table_.find(id);
  if (entry == nullptr) return;
  if (entry->leaving == Leaving::deleted || entry->ending) return remove(id);  // recorded when the delete began
  if (entry->leaving == Leaving::expired || ended.cause == runtime::EndCause::expired) {
    remove(id);
    return note("sandbox.expire", id, {{"cpu_nanos", cat(ended.cpu_nanos)}, {"memory_peak_bytes", cat(ended.memory_peak_bytes)}});
  }
  if (!is_finished(entry->sandbox.status.state)) finish(*entry, ended);
}

void Service::finish(Entry& entry, const runtime::Ended& ended) {
  auto& sandbox = entry.sandbox;
  entry.image_hold.reset();
  auto outcome = outcome_of(ended, sandbox.spec.limits);
  Result<> moved = Ok{};
  // The states table knows no way from a half-done pause to Terminated; Stopping is the one in between.
  if (!may_go(sandbox.status.state, outcome.state)) moved = move_to(sandbox, State::stopping, "", "");
  if (moved) moved = move_to(sandbox, outcome.state, outcome.reason, outcome.message);
  if (!moved) log::error("end not applied", {{"sandbox", sandbox.id.text()}, {"error", moved.error().what()}});
  volumes_->release(sandbox.id.text(), sandbox.spec);
  if (!pool_of(sandbox.spec).empty()) spares_.look_again();
  note("sandbox.end", sandbox.id.text(),
       {{"cause", std::string(name_of(ended.cause))},
        {"status", cat(ended.status)},
        {"state", std::string(osb::name_of(outcome.state))},
        {"reason", outcome.reason},
        {"cpu_nanos", cat(ended.cpu_nanos)},
        {"memory_peak_bytes", cat(ended.memory_peak_bytes)}});
  while (table_.finished() > options_.max_finished) remove(*table_.oldest_finished());
}

}  // namespace osb::lifecycle
