#include "lifecycle/idempotency.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "lifecycle/service.h"
#include "lifecycle/shield.h"

namespace osb::lifecycle {
namespace {

Error used_otherwise() {
  return Error(Errc::malformed, "This Idempotency-Key was used for another request.")
      .with_code("IDEMPOTENCY::CONFLICT")
      .at("Idempotency-Key")
      .with_hint("Use a new key for a new request.");
}

Error gone(const std::string& id) {
  return Error(Errc::conflict, cat("The sandbox that was made with this Idempotency-Key, ", id, ", no longer exists."))
      .with_code("IDEMPOTENCY::GONE")
      .at("Idempotency-Key")
      .with_hint("Use a new key to make another one.");
}

}  // namespace

bool is_idempotency_key(std::string_view text) {
  auto fine = [](char c) {
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || std::string_view("._:-").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), fine);
}

Result<> CreateKeys::load() {
  TRY(auto records, store_.create_keys());
  for (auto& record : records) {
    auto slot = std::make_shared<Slot>(io_.get_executor());
    slot->record = std::move(record);
    by_age_.emplace(slot->record.created_at.micros, name_of(slot->record));
    slots_.insert_or_assign(name_of(slot->record), slot);
  }
  return Ok{};
}

// Those still under way are never the oldest for long, and dropping one would let its twin run.
void CreateKeys::drop_old(WallTime now) {
  for (auto at = by_age_.begin(); at != by_age_.end();) {
    bool old = at->first + kLifetimeMicros <= now.micros || slots_.size() >= kMost;
    if (!old) return;
    auto name = (at++)->second;
    if (!slots_.at(name)->record.sandbox.empty()) forget(name);
  }
}

void CreateKeys::forget(const Name& name) {
  auto found = slots_.find(name);
  if (found == slots_.end()) return;
  by_age_.erase({found->second->record.created_at.micros, name});
  slots_.erase(found);
  auto erased = store_.erase_create_key(name.first, name.second);
  if (!erased) log::warn("create key not removed", {{"error", erased.error().what()}});
}

Result<std::shared_ptr<CreateKeys::Slot>> CreateKeys::find(const std::string& owner, const CreateOnce& once, WallTime now) {
  drop_old(now);
  auto found = slots_.find({owner, once.key});
  if (found == slots_.end()) return std::shared_ptr<Slot>();
  if (found->second->record.fingerprint != once.fingerprint) return used_otherwise();
  return found->second;
}

std::shared_ptr<CreateKeys::Slot> CreateKeys::begin(const std::string& owner, const CreateOnce& once, WallTime now) {
  auto slot = std::make_shared<Slot>(io_.get_executor());
  slot->record = {owner, once.key, once.fingerprint, "", now};
  by_age_.emplace(now.micros, name_of(slot->record));
  slots_.emplace(name_of(slot->record), slot);
  return slot;
}

void CreateKeys::finish(const std::shared_ptr<Slot>& slot, const Result<SandboxId>& made) {
  if (made) {
    slot->record.sandbox = made->text();
  } else {
    slot->failed = made.error();
    forget(name_of(slot->record));
  }
  slot->changed.cancel();
}

Task<Result<Created>> Service::create_once(SandboxSpec spec, CreateOnce once, Caller caller) {
  auto work = create_once_shielded(std::move(spec), std::move(once), std::move(caller));
  co_return co_await shield(tasks_, "create sandbox once", std::move(work));
}

Task<Result<Created>> Service::create_once_shielded(SandboxSpec spec, CreateOnce once, Caller caller) {
  CO_TRY(auto slot, create_keys_.find(caller.name, once, options_.wall_clock()));
  if (slot) co_return co_await replay(std::move(slot), std::move(caller));
  slot = create_keys_.begin(caller.name, once, options_.wall_clock());
  auto made = co_await create_shielded(std::move(spec), std::move(caller), slot->record);
  create_keys_.finish(slot, made ? Result<SandboxId>((*made)->id) : made.error());
  if (!made) co_return std::move(made).error();
  co_return Created{std::move(**made), false};
}

Task<Result<Created>> Service::replay(std::shared_ptr<CreateKeys::Slot> slot, Caller caller) {
  while (slot->record.sandbox.empty() && !slot->failed) co_await slot->changed.async_wait(nothrow);
  if (slot->failed) co_return *slot->failed;
  auto id = SandboxId::parse(slot->record.sandbox);
  auto sandbox = id ? get(*id, caller) : Result<Sandbox>(gone(slot->record.sandbox));
  if (!sandbox) co_return gone(slot->record.sandbox);
  co_return Created{*std::move(sandbox), true};
}

}  // namespace osb::lifecycle
