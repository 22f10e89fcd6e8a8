#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "lifecycle/service.h"

namespace osb::lifecycle {
namespace {

constexpr std::int64_t kExpireAgainNanos = 5'000'000'000;

}  // namespace

Task<void> Service::run_timer() {
  while (!stopping_) {
    bool fired = co_await timer_.wait();
    if (!fired || stopping_) co_return;
    auto now = boot_now_nanos();
    expire_due(now);
    save_unsaved(now);
    arm_timer();
  }
}

void Service::arm_timer() {
  auto next = table_.next_due();
  if (!unsaved_.empty()) next = std::min(next.value_or(save_again_at_), save_again_at_);
  timer_.arm(next);
}

void Service::expire_due(std::int64_t now) {
  for (const auto& id : table_.due(now)) {
    auto& entry = *table_.find(id);
    if (is_finished(entry.sandbox.status.state)) {
      remove(id);
      note("sandbox.expire", id, {{"state", "ended before"}});
      continue;
    }
    if (entry.sandbox.status.state == State::pending) {
      remove(id);
      note("sandbox.expire", id, {{"state", "Pending"}});
      continue;
    }
    set_leaving(entry, Leaving::expired);
    tasks_.spawn("expire sandbox", expire(entry.sandbox.id));
  }
}

// The runtime should have ended it by itself; asked again it either does or says that it is gone.
Task<void> Service::expire(SandboxId id) {
  auto gone = co_await runtime_.destroy(id);
  auto* entry = table_.find(id.text());
  if (entry == nullptr) co_return;  // its end was told and recorded meanwhile
  if (!gone && gone.error().kind() != Errc::not_found) {
    log::error("expired sandbox not destroyed, will try again", {{"sandbox", id.text()}, {"error", gone.error().what()}});
    entry->expire_not_before = boot_now_nanos() + kExpireAgainNanos;
    set_leaving(*entry, Leaving::no);
    co_return;
  }
  remove(id.text());
  note("sandbox.expire", id.text(), {});
}

void Service::save_unsaved(std::int64_t now) {
  if (unsaved_.empty() || now < save_again_at_) return;
  auto ids = unsaved_;
  for (const auto& id : ids) {
    save(id);
    if (unsaved_.contains(id)) return;  // the others would fail the same way
  }
  if (unsaved_.empty()) log::info("all records saved again");
}

}  // namespace osb::lifecycle
