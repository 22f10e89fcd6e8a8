#include "base/log.h"
#include "base/text.h"
#include "lifecycle/errors.h"
#include "lifecycle/service.h"
#include "lifecycle/shield.h"
#include "model/create_request.h"

namespace osb::lifecycle {
namespace {

constexpr std::int64_t kTellRefusedNanos = 1'000'000'000;
constexpr std::size_t kMostRefused = 1024;

Error not_allowed(std::string_view field, std::string_view why) {
  return Error(Errc::invalid_argument, cat(field, ": ", why)).with_code("SANDBOX::INVALID_PARAMETER").at(field);
}

// Takes the id off the list of creates under way on every path out, also when the caller's coroutine is destroyed.
template <class Map>
class MakingMark {
 public:
  MakingMark(Map& making, const Entry& entry) : making_(making), id_(entry.sandbox.id.text()) {
    making_.emplace(id_, typename Map::mapped_type{std::nullopt, entry.image_name, entry.image_digest});
  }
  MakingMark(const MakingMark&) = delete;
  MakingMark& operator=(const MakingMark&) = delete;
  ~MakingMark() { making_.erase(id_); }

 private:
  Map& making_;
  std::string id_;
};

void take_id(Entry& entry, const SandboxId& id) {
  entry.sandbox.id = id;
  if (entry.create_key) entry.create_key->sandbox = id.text();
}

// A snapshot that a create stands on is not removed under it.
class SnapshotUse {
 public:
  SnapshotUse(std::multiset<std::string>& uses, const std::string& id) : uses_(uses), at_(uses.insert(id)) {}
  SnapshotUse(const SnapshotUse&) = delete;
  SnapshotUse& operator=(const SnapshotUse&) = delete;
  ~SnapshotUse() { uses_.erase(at_); }

 private:
  std::multiset<std::string>& uses_;
  std::multiset<std::string>::iterator at_;
};

}  // namespace

Service::Details Service::create_details(const Entry& entry) {
  const auto& spec = entry.sandbox.spec;
  Details out;
  out.reserve(11);
  out.emplace_back("image", spec.image);
  out.emplace_back("digest", entry.image_digest);
  out.emplace_back("memory_bytes", cat(spec.limits.memory_bytes));
  out.emplace_back("cpu_millis", cat(spec.limits.cpu_millis));
  out.emplace_back("pids", cat(spec.limits.pids));
  out.emplace_back("disk_bytes", cat(spec.limits.disk_bytes));
  out.emplace_back("timeout_seconds", spec.timeout_seconds ? cat(*spec.timeout_seconds) : std::string("none"));
  out.emplace_back("mode", name_of(spec.policy.user));
  out.emplace_back("syscalls", name_of(spec.policy.syscalls));
  out.emplace_back("root", spec.policy.root == RootMode::read_only ? "ro" : "rw");
  out.emplace_back("network", "deny_all");
  return out;
}

Task<Result<Sandbox>> Service::create(SandboxSpec spec, Caller caller) {
  auto work = create_shielded(std::move(spec), std::move(caller), std::nullopt);
  CO_TRY(auto made, co_await shield(tasks_, "create sandbox", std::move(work)));
  co_return std::move(*made);
}

Task<Result<SandboxPtr>> Service::create_shielded(SandboxSpec spec, Caller caller, std::optional<store::CreateKey> key) {
  auto ticket = co_await entrance_.enter(caller.name, spec.limits.memory_bytes);
  if (!ticket) {
    note_refusal(caller, ticket.error());
    co_return std::move(ticket).error();
  }
  auto auth = std::exchange(spec.image_auth, {});  // from here on only a pull knows it
  auto prepared = prepare(std::move(spec), caller);
  if (!prepared) {
    note_failure(caller, "sandbox.create", "", prepared.error());
    co_return std::move(prepared).error();
  }
  auto entry = *std::move(prepared);
  auto id = entry->sandbox.id.text();
  if (key) key->sandbox = id;
  entry->create_key = std::move(key);
  if (entry->sandbox.status.state == State::pending) {
    auto begun = begin_pending(std::move(entry), std::move(auth), caller);
    if (!begun) note_failure(caller, "sandbox.create", id, begun.error());
    co_return begun;
  }
  auto made = co_await make(std::move(entry), caller);
  if (!made) made = out_of_room(std::move(made).error());
  if (!made) note_failure(caller, "sandbox.create", id, made.error());
  co_return made;
}

Task<Result<SandboxPtr>> Service::make(EntryPtr entry, Caller caller) {
  auto claimed = co_await claim_spare(entry, caller);
  if (claimed) co_return *std::move(claimed);
  auto id = entry->sandbox.id;
  MakingMark mark(making_, *entry);
  SnapshotUse use(making_from_, entry->sandbox.spec.snapshot_id);
  CO_TRY(auto volumes, co_await volumes_->open(entry->sandbox.spec.volumes, caller));
  entry->sandbox.spec.volumes = volumes.specs;
  runtime_.stage_volumes(id, std::move(volumes.mounts));
  auto made = co_await runtime_.create(id, effective(entry->sandbox.spec), entry->sandbox.deadline_boot_nanos);
  auto settled = co_await settle_create(std::move(entry), std::move(caller), std::move(made));
  if (!settled) volumes_->undo(volumes);
  co_return settled;
}

// nullopt: no spare is of this shape, or it was lost; the sandbox is then made from nothing, under its own id. `entry` is that of
// make(), which waits.
Task<std::optional<Result<SandboxPtr>>> Service::claim_spare(EntryPtr& entry, Caller caller) {
  auto shape = shape_of(*entry);
  auto spare = shape ? spares_.take(*shape, entry->image_hold) : std::nullopt;
  if (!spare) co_return std::nullopt;
  auto own = entry->sandbox.id;
  take_id(*entry, *spare);
  MakingMark mark(making_, *entry);
  auto claimed = co_await runtime_.claim(*spare, effective(entry->sandbox.spec), entry->sandbox.deadline_boot_nanos);
  bool lost = !claimed && claimed.error().kind() != Errc::invalid_argument;
  if (lost) {
    spares_.lost(*shape);
    log::warn("spare sandbox lost", {{"sandbox", spare->text()}, {"error", claimed.error().what()}});
    take_id(*entry, own);
    co_return std::nullopt;
  }
  auto settled = co_await settle_create(std::move(entry), std::move(caller), std::move(claimed));
  co_return settled;
}

// What a spare must be made from to become this sandbox; nullopt when it has parts that no spare has.
std::optional<Shape> Service::shape_of(const Entry& entry) const {
  const auto& spec = entry.sandbox.spec;
  if (!spec.snapshot_id.empty() || !spec.volumes.empty() || spec.platform) return std::nullopt;
  return Shape{pool_of(spec), image_for(spec.image), entry.image_digest, spec.policy, spec.limits};
}

Task<Result<SandboxPtr>> Service::settle_create(EntryPtr entry, Caller caller, Result<> made) {
  if (!made) co_return coded(std::move(made).error(), "DOCKER::SANDBOX_START_FAILED").in("create sandbox");
  auto id = entry->sandbox.id;
  auto admitted = admit(std::move(entry), caller);
  if (!admitted) co_await undo_create(id);
  co_return admitted;
}

// What the runtime is given: images under the name the store knows.
SandboxSpec Service::effective(SandboxSpec spec) const {
  if (spec.snapshot_id.empty()) spec.image = image_for(spec.image);
  return spec;
}

// A flood of refusals must not fill the disk: of those with the same caller and code one a second is told, with how many it was.
void Service::note_refusal(const Caller& caller, const Error& error) {
  if (refused_.size() > kMostRefused) refused_.clear();
  auto& refused = refused_[{caller.name, error.code()}];
  ++refused.untold;
  auto now = boot_now_nanos();
  if (now < refused.tell_again_at) return;
  refused.tell_again_at = now + kTellRefusedNanos;
  auto count = cat(std::exchange(refused.untold, 0));
  log::warn("creates refused", {{"caller", caller.name}, {"code", error.code()}, {"count", count}});
  auto done = audit_.record(caller, {"sandbox.create", "", error.code(), {{"error", error.what()}, {"count", count}}});
  if (!done) log::error("audit record lost", {{"action", "sandbox.create"}, {"error", done.error().what()}});
}

Result<> Service::check_policy(const SandboxSpec& spec) const {
  if (spec.policy.user == UserMode::root && !options_.allow_root_mode)
    return not_allowed("extensions.opensandbox.mode", "root mode is switched off on this server (security.allow_root_mode)");
  if (spec.policy.syscalls == SyscallProfile::permissive && !options_.allow_permissive_syscalls)
    return not_allowed("extensions.opensandbox.syscalls",
                       "the permissive profile is switched off on this server (security.allow_permissive)");
  return Ok{};
}

Result<> Service::check_options(const SandboxSpec& spec) const {
  CHECK_OK(check_policy(spec));
  auto cap = options_.max_timeout_seconds;
  if (cap && !spec.timeout_seconds) return not_allowed("timeout", cat("this server needs one, of at most ", *cap, " seconds"));
  if (cap && *spec.timeout_seconds > *cap) return not_allowed("timeout", cat("this server allows at most ", *cap, " seconds"));
  if (spec.timeout_seconds && (*spec.timeout_seconds <= 0 || *spec.timeout_seconds > kMaxTimeoutSeconds))
    return not_allowed("timeout", "must be more than zero and at most 100 years");
  return Ok{};
}

Result<EntryPtr> Service::prepare(SandboxSpec spec, const Caller& caller) {
  CHECK_OK(check_options(spec));
  auto image = source_image(spec, caller);
  bool pulls = !image && spec.snapshot_id.empty() && may_pull(image_for(spec.image), image.error());
  if (!image && !pulls) return std::move(image).error();
  if (pulls) CHECK_OK(pulls_.check_room());
  if (image && spec.snapshot_id.empty() && doomed_.contains(image->name))
    return Error(Errc::conflict, cat("image ", image->name, " is being removed")).with_code("SANDBOX::IMAGE_IN_USE").at("image.uri");
  if (image) spec.layers = image->layers;
  auto now = options_.wall_clock();
  auto entry = std::make_unique<Entry>(Sandbox{.id = SandboxId::random(),
                                               .owner = caller.name,
                                               .spec = std::move(spec),
                                               .status = {State::running, "CONTAINER_RUNNING", "The sandbox is running.", now},
                                               .created_at = now,
                                               .expires_at = std::nullopt});
  auto& sandbox = entry->sandbox;
  if (auto seconds = sandbox.spec.timeout_seconds) {
    sandbox.expires_at = WallTime{now.micros + *seconds * 1'000'000};
    sandbox.deadline_boot_nanos = static_cast<std::uint64_t>(boot_now_nanos() + *seconds * 1'000'000'000);
    sandbox.boot_id = options_.boot_id;
  }
  if (!image) {
    mark_pending(*entry);
    return entry;
  }
  if (sandbox.spec.snapshot_id.empty()) images_.note_use(*image);
  entry->image_hold = hold_image(*image);
  entry->image_name = image->name;
  entry->image_digest = sandbox.spec.image_digest = image->digest;
  return entry;
}

Result<image::Image> Service::source_image(const SandboxSpec& spec, const Caller& caller) const {
  if (!spec.snapshot_id.empty()) return snapshots_->restorable(spec.snapshot_id, caller);
  auto image = images_.resolve(image_for(spec.image));
  if (!image) return coded(std::move(image).error(), "SANDBOX::IMAGE_NOT_FOUND").at("image.uri");
  return image;
}

// The runtime has made it. Recorded and written down, or the caller takes it apart again. Recorded first: a crash
// between the two leaves an orphan that the next start removes, never a sandbox that nobody recorded.
Result<SandboxPtr> Service::admit(EntryPtr entry, const Caller& caller) {
  auto id = entry->sandbox.id.text();
  CHECK_OK(record(caller, "sandbox.create", id, create_details(*entry)));
  auto stored = entry->create_key ? store_.put(entry->sandbox, *entry->create_key) : store_.put(entry->sandbox);
  if (!stored) return std::move(stored).error().in("store sandbox");
  entry->create_key.reset();
  entry->events = begin_events(entry->sandbox);
  const auto& placed = table_.insert(std::move(*entry));
  auto ended = std::exchange(making_.find(id)->second.ended, std::nullopt);
  making_.erase(id);
  arm_timer();
  if (!ended) return std::make_unique<Sandbox>(placed.sandbox);
  on_ended(*ended);
  if (const auto* still = table_.find(id)) return std::make_unique<Sandbox>(still->sandbox);
  return Error(Errc::unavailable, "the sandbox was gone before it was ready").with_code("DOCKER::SANDBOX_START_FAILED");
}

Task<void> Service::undo_create(SandboxId id) {
  auto undone = co_await runtime_.destroy(id);
  if (undone || undone.error().kind() == Errc::not_found) co_return;
  log::error("sandbox of a failed create not destroyed, will try again", {{"sandbox", id.text()}, {"error", undone.error().what()}});
  tasks_.spawn("end sandbox", end_until_gone(id));
}

std::string Service::image_for(const std::string& reference) const {
  auto alias = options_.image_aliases.find(reference);
  return alias == options_.image_aliases.end() ? reference : alias->second;
}

}  // namespace osb::lifecycle
