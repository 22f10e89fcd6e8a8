#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "lifecycle/service.h"

namespace osb::lifecycle {
namespace {

constexpr std::string_view kLostText = "The sandbox was gone when the server started: the host restarted, or it ended unseen.";

// On the boot that made it the stored deadline counts; on any other one only the wall time is left.
void restore_deadline(Sandbox& record, const std::string& boot_id, WallTime now) {
  if (!record.expires_at || (record.boot_id == boot_id && record.deadline_boot_nanos != 0)) return;
  auto ahead = std::max<std::int64_t>(record.expires_at->micros - now.micros, 1);
  record.deadline_boot_nanos = static_cast<std::uint64_t>(boot_now_nanos() + ahead * 1000);
  record.boot_id = boot_id;
}

}  // namespace

Task<Result<>> Service::start() {
  if (auto opened = timer_.open(); !opened) co_return std::move(opened).error();
  CO_TRY(auto records, store_.sandboxes());
  if (auto loaded = create_keys_.load(); !loaded) co_return std::move(loaded).error();
  CO_TRY(auto live, co_await runtime_.list());
  std::map<std::string, bool> frozen;
  for (const auto& one : live) frozen.emplace(one.id.text(), one.frozen);
  std::size_t adopted = 0;
  for (auto& record : records) {
    restore_deadline(record, options_.boot_id, options_.wall_clock());
    auto found = frozen.find(record.id.text());
    if (found == frozen.end() && record.status.state == State::pending) {
      give_up_pending(std::move(record));
      continue;
    }
    if (found == frozen.end() || is_finished(record.status.state)) {
      keep_ended(std::move(record));
      continue;
    }
    bool is_frozen = found->second;
    frozen.erase(found);
    ++adopted;
    if (auto done = co_await adopt(std::move(record), is_frozen); !done) co_return std::move(done).error();
  }
  for (const auto& [id, unused] : frozen) co_await destroy_orphan(*SandboxId::parse(id));
  log::info("sandboxes reconciled", {{"adopted", adopted}, {"records", table_.size()}, {"orphans", frozen.size()}});
  if (auto loaded = volumes_->start(); !loaded) co_return std::move(loaded).error();
  // Of sandboxes that were lost while nobody looked.
  table_.each([this](const Entry& entry) {
    if (is_finished(entry.sandbox.status.state)) volumes_->release(entry.sandbox.id.text(), entry.sandbox.spec);
  });
  if (auto reconciled = co_await snapshots_->start(); !reconciled) co_return std::move(reconciled).error();
  started_ = true;
  if (auto loaded = pools_->start(options_.pools); !loaded) co_return std::move(loaded).error();
  for (const auto& ended : std::exchange(early_, {})) on_ended(ended);
  tasks_.spawn("lifecycle timer", run_timer());
  arm_timer();
  co_return Ok{};
}

void Service::place(Sandbox record) {
  const auto& spec = record.spec;
  auto image = spec.snapshot_id.empty() ? images_.resolve(image_for(spec.image)) : images_.snapshot(spec.snapshot_id);
  Entry entry{.sandbox = std::move(record)};
  if (image) {
    entry.image_name = image->name;
    entry.image_digest = image->digest;
  }
  // The name may stand for another image by now; what it runs on has not changed.
  if (!entry.sandbox.spec.image_digest.empty()) {
    entry.image_digest = entry.sandbox.spec.image_digest;
    if (image && image->digest != entry.image_digest && entry.image_digest.starts_with("sha256:"))
      image = images_.resolve(entry.image_digest);
  }
  if (image && !is_finished(entry.sandbox.status.state)) entry.image_hold = hold_image(*image);
  entry.events = recall_events(entry.sandbox);
  table_.insert(std::move(entry));
}

Task<Result<>> Service::adopt(Sandbox record, bool frozen) {
  auto id = record.id;
  auto deadline = record.deadline_boot_nanos;
  place(std::move(record));
  auto& sandbox = table_.find(id.text())->sandbox;
  if (sandbox.status.state == State::pending) {
    // Made just before the old process died; the pull it waited for is done.
    if (auto moved = move_to(sandbox, State::running, "CONTAINER_RUNNING", "The sandbox is running."); !moved) co_return moved;
  }
  if (frozen && sandbox.status.state == State::running) {
    if (auto moved = move_to(sandbox, State::pausing, "", ""); !moved) co_return moved;
    if (auto moved = move_to(sandbox, State::paused, "CONTAINER_PAUSED", "Every process of the sandbox is frozen."); !moved)
      co_return moved;
  } else if (!frozen && sandbox.status.state == State::paused) {
    if (auto moved = move_to(sandbox, State::resuming, "", ""); !moved) co_return moved;
    if (auto moved = move_to(sandbox, State::running, "CONTAINER_RUNNING", "The sandbox is running."); !moved) co_return moved;
  }
  table_.find(id.text())->events.add({options_.wall_clock(), "adopted", "", "The server was started again and found it as it was.", false});
  // A renewal cut short by a crash may have reached only one of the two.
  auto set = co_await runtime_.set_deadline(id, deadline);
  if (!set) log::warn("deadline not set", {{"sandbox", id.text()}, {"error", set.error().what()}});
  co_return Ok{};
}

void Service::keep_ended(Sandbox record) {
  auto id = record.id.text();
  bool was_live = !is_finished(record.status.state);
  place(std::move(record));
  if (!was_live) return;
  table_.find(id)->image_hold.reset();
  auto moved = move_to(table_.find(id)->sandbox, State::failed, "SANDBOX_LOST", std::string(kLostText));
  if (!moved) log::error("lost sandbox not marked", {{"sandbox", id}, {"error", moved.error().what()}});
  note("sandbox.lost", id, {});
}

Task<void> Service::destroy_orphan(SandboxId id) {
  auto gone = co_await runtime_.destroy(id);
  bool failed = !gone && gone.error().kind() != Errc::not_found;
  if (failed) {
    log::error("orphan not destroyed, will try again", {{"sandbox", id.text()}, {"error", gone.error().what()}});
    tasks_.spawn("end sandbox", end_until_gone(id));
  }
  note("sandbox.orphan", id.text(), {{"destroyed", failed ? "not yet" : "yes"}});
}

}  // namespace osb::lifecycle
