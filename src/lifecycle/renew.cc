// Changes of a sandbox that lives on: its expiry and its metadata.
#include "base/log.h"
#include "base/text.h"
#include "lifecycle/errors.h"
#include "lifecycle/service.h"
#include "lifecycle/shield.h"
#include "model/create_request.h"

namespace osb::lifecycle {
namespace {

constexpr std::int64_t kMicros = 1'000'000;
// Clients compute "now + duration" on their own clock; a cap counts from ours.
constexpr std::int64_t kClockSlackSeconds = 60;

Error bad_expiration(Errc kind, std::string what) {
  return Error(kind, std::move(what)).with_code("DOCKER::INVALID_EXPIRATION").at("expiresAt");
}

}  // namespace

Result<std::uint64_t> Service::deadline_for(const Sandbox& sandbox, WallTime expires_at) const {
  if (is_finished(sandbox.status.state)) return bad_expiration(Errc::conflict, cat("sandbox ", sandbox.id.text(), " has ended"));
  if (!sandbox.expires_at)
    return bad_expiration(Errc::conflict, cat("sandbox ", sandbox.id.text(), " never expires: it was made without a timeout"));
  auto ahead = expires_at.micros - options_.wall_clock().micros;
  if (ahead <= 0) return bad_expiration(Errc::invalid_argument, "expiresAt must be in the future");
  if (ahead > kMaxTimeoutSeconds * kMicros) return bad_expiration(Errc::invalid_argument, "expiresAt is more than 100 years ahead");
  auto cap = options_.max_timeout_seconds;
  if (cap && ahead > (*cap + kClockSlackSeconds) * kMicros)
    return bad_expiration(Errc::invalid_argument, cat("expiresAt is further ahead than the ", *cap, " seconds this server allows"));
  return static_cast<std::uint64_t>(boot_now_nanos() + ahead * 1000);
}

// Recorded, stored, then visible; a change that cannot be stored gets a second line that says so.
Result<> Service::replace(Entry& entry, Sandbox changed, const Caller& caller, std::string action, Details detail) {
  auto id = changed.id.text();
  CHECK_OK(record(caller, action, id, std::move(detail)));
  if (auto stored = store_.put(changed); !stored) {
    auto error = std::move(stored).error().in("store sandbox");
    note_failure(caller, std::move(action), id, error);
    return error;
  }
  entry.sandbox = std::move(changed);
  table_.changed(entry);
  arm_timer();
  return Ok{};
}

Task<Result<WallTime>> Service::renew(SandboxId id, WallTime expires_at, Caller caller) {
  auto work = renew_shielded(std::move(id), expires_at, std::move(caller));
  co_return co_await shield(tasks_, "renew sandbox", std::move(work));
}

Task<Result<WallTime>> Service::renew_shielded(SandboxId id, WallTime expires_at, Caller caller) {
  CO_TRY(auto* entry, owned(id, caller));
  CO_TRY(auto deadline, deadline_for(entry->sandbox, expires_at));
  Result<> set = Ok{};
  // While it is Pending the runtime does not know it; start_pending hands over the deadline of that moment.
  bool waits = entry->sandbox.status.state == State::pending;
  if (!waits) set = co_await runtime_.set_deadline(id, deadline);
  entry = table_.find(id.text());
  if (entry == nullptr || entry->leaving != Leaving::no) co_return unknown_sandbox(id);
  if (!set) {
    note_failure(caller, "sandbox.renew", id.text(), set.error());
    co_return std::move(set).error().in("renew sandbox");
  }
  // The runtime answers in the order it was asked, so of two renewals at once the same one wins there and here.
  Sandbox renewed = entry->sandbox;
  renewed.expires_at = expires_at;
  renewed.deadline_boot_nanos = deadline;
  renewed.boot_id = options_.boot_id;
  auto before = entry->sandbox.deadline_boot_nanos;
  Details detail{{"expires_at", format_rfc3339(expires_at)}};
  auto done = replace(*entry, std::move(renewed), caller, "sandbox.renew", std::move(detail));
  if (done) {
    entry->events.add({options_.wall_clock(), "renewed", "", cat("It now expires at ", format_rfc3339(expires_at), "."), false});
    co_return expires_at;
  }
  if (waits) co_return std::move(done).error();
  auto back = co_await runtime_.set_deadline(id, before);
  if (!back) log::error("deadline not taken back", {{"sandbox", id.text()}, {"error", back.error().what()}});
  co_return std::move(done).error();
}

Result<Sandbox> Service::patch_metadata(const SandboxId& id, const std::map<std::string, std::optional<std::string>>& patch,
                                        const Caller& caller) {
  TRY(auto* entry, owned(id, caller));
  Sandbox patched = entry->sandbox;
  Details detail;
  for (const auto& [key, value] : patch) {
    if (value) patched.spec.metadata.insert_or_assign(key, *value);
    if (!value) patched.spec.metadata.erase(key);
    detail.emplace_back(key, value ? *value : "(removed)");
  }
  if (patched.spec.metadata.size() > kMaxMetadataEntries)
    return Error(Errc::invalid_argument, cat("metadata: at most ", kMaxMetadataEntries, " entries are allowed"))
        .with_code("INVALID_METADATA_LABEL")
        .at("metadata");
  CHECK_OK(replace(*entry, std::move(patched), caller, "sandbox.metadata", std::move(detail)));
  entry->events.add({options_.wall_clock(), "relabelled", "", "Its metadata was changed.", false});
  return entry->sandbox;
}

}  // namespace osb::lifecycle
