#include "lifecycle/snapshots.h"

#include <algorithm>
#include <memory>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "lifecycle/off_loop.h"
#include "lifecycle/service.h"
#include "model/launch_wire.h"

namespace osb::lifecycle {
namespace {

constexpr std::string_view kReady = "snapshot_runtime_ready";
constexpr std::string_view kFailed = "snapshot_runtime_failed";
constexpr std::string_view kTimeout = "snapshot_runtime_timeout";
constexpr runtime::SnapshotLimits kLimits{.bytes = 64ull << 30, .entries = 4'000'000, .seconds = 600};

Error unknown_snapshot(std::string_view id) {
  return Error(Errc::not_found, cat("snapshot ", json_string(id.substr(0, 40)), " does not exist"))
      .with_code("SNAPSHOT::NOT_FOUND")
      .at("snapshotId");
}

Error conflict(std::string what, std::string_view code) { return Error(Errc::conflict, std::move(what)).with_code(code); }

// Removing a tree takes its time.
bool discard(std::shared_ptr<image::LayerDraft> draft) {
  draft.reset();
  return true;
}

bool may_see(const Snapshot& snapshot, const Caller& caller) { return caller.sees_all || snapshot.owner == caller.name; }

}  // namespace

Snapshots::Snapshots(asio::io_context& io, Service& service, store::Store& store, audit::Log& audit, image::Store& images,
                     runtime::Runtime& runtime)
    : service_(service), store_(store), audit_(audit), images_(images), runtime_(runtime), tasks_(io.get_executor()) {}

Task<Result<>> Snapshots::start() {
  CO_TRY(auto rows, store_.snapshots());
  CO_TRY(auto layers, images_.snapshots());
  std::set<std::string> orphans(layers.begin(), layers.end());
  for (auto& row : rows) {
    auto id = row.id.text();
    bool has_layer = orphans.erase(id) > 0;
    auto& kept = rows_.emplace(id, std::move(row)).first->second;
    if (kept.state == SnapshotState::deleting) {
      tasks_.spawn("delete snapshot", erase(id));
    } else if (kept.state == SnapshotState::creating && has_layer) {
      move_to(kept, SnapshotState::ready, kReady, "The snapshot was complete when the server restarted.");
    } else if (kept.state == SnapshotState::creating) {
      move_to(kept, SnapshotState::failed, kFailed, "The server restarted while the snapshot was being taken.");
    } else if (kept.state == SnapshotState::ready && !has_layer) {
      move_to(kept, SnapshotState::failed, kFailed, "The layer of the snapshot is gone from the image store.");
    }
  }
  for (const auto& id : orphans) {
    log::warn("a snapshot without a record is removed", {{"snapshot", id}});
    tasks_.spawn("delete snapshot", erase(id));
  }
  co_return Ok{};
}

Task<void> Snapshots::stop() {
  co_await tasks_.stop();
  workers_.join();
}

Result<> Snapshots::check_source(const Sandbox& sandbox) const {
  if (!runtime_.capabilities().snapshots)
    return Error(Errc::unsupported, "this runtime cannot take snapshots").with_code("SNAPSHOT::NOT_IMPLEMENTED");
  if (sandbox.status.state != State::running && sandbox.status.state != State::paused)
    return conflict(cat("sandbox ", sandbox.id.text(), " is ", name_of(sandbox.status.state), ", not Running or Paused"),
                    "SNAPSHOT::INVALID_SOURCE_STATE");
  if (queue_.size() >= kMaxWaiting || rows_.size() >= kMaxSnapshots)
    return Error(Errc::exhausted, cat("this server keeps ", kMaxSnapshots, " snapshots and takes ", kMaxWaiting, " at one time"))
        .with_code("SANDBOX::LIMIT_REACHED")
        .with_hint("delete snapshots that are no longer needed");
  return Ok{};
}

Result<image::Image> Snapshots::base_of(const SnapshotSource& source) const {
  const auto& spec = source.sandbox.spec;
  auto base = spec.snapshot_id.empty() ? images_.resolve(source.image_digest) : images_.snapshot(spec.snapshot_id);
  if (!base && spec.layers.empty()) return std::move(base).error();
  image::Image image = base ? *std::move(base) : image::Image{};
  image.name = source.image_name;
  image.digest = source.image_digest;
  if (!spec.layers.empty()) image.layers = spec.layers;  // a name may mean another image by now
  if (image.snapshot_layers >= kMaxChain || image.layers.size() >= wire::kMaxLayers)
    return conflict(cat("the sandbox stands on ", image.snapshot_layers, " snapshots already; at most ", kMaxChain, " (", wire::kMaxLayers,
                        " layers in all) can be stacked"),
                    "SNAPSHOT::INVALID_SOURCE_STATE")
        .with_hint("copy what is needed into a sandbox made from the image, and take the snapshot there");
  return image;
}

Result<Snapshot> Snapshots::create(const SandboxId& sandbox, std::string name, const Caller& caller) {
  TRY(auto source, service_.snapshot_source(sandbox, caller));
  CHECK_OK(check_source(source.sandbox));
  TRY(auto base, base_of(source));
  auto now = service_.now();
  Snapshot snapshot{.id = SnapshotId::random(),
                    .sandbox = sandbox,
                    .owner = caller.name,
                    .name = std::move(name),
                    .state = SnapshotState::creating,
                    .reason = "snapshot_accepted",
                    .message = "Snapshot creation accepted.",
                    .changed_at = now,
                    .created_at = now,
                    .image_name = source.image_name,
                    .image_digest = source.image_digest};
  auto recorded =
      audit_.record(caller, {"snapshot.create", sandbox.text(), "ok", {{"snapshot", snapshot.id.text()}, {"name", snapshot.name}}});
  if (!recorded) return std::move(recorded).error().in("audit");
  if (auto stored = store_.put_snapshot(snapshot); !stored) return std::move(stored).error().in("store snapshot");
  rows_.emplace(snapshot.id.text(), snapshot);
  queue_.push_back({snapshot.id.text(), std::move(base)});
  if (!std::exchange(running_, true)) tasks_.spawn("take snapshots", run_queue());
  return snapshot;
}

Task<void> Snapshots::run_queue() {
  while (!queue_.empty()) co_await take(queue_.front().id);
  running_ = false;
}

// One at a time: copying is bound by the disk, and the sandbox stands still only while its own turn lasts.
Task<void> Snapshots::take(std::string id) {
  image::Image base = queue_.front().base;
  auto sandbox = rows_.find(id)->second.sandbox;
  auto facts = co_await capture(id, std::move(sandbox), std::move(base));
  queue_.pop_front();
  auto row = rows_.find(id);
  if (row == rows_.end()) co_return;
  auto& snapshot = row->second;
  if (!facts) {
    bool late = facts.error().kind() == Errc::timeout;
    move_to(snapshot, SnapshotState::failed, late ? kTimeout : kFailed, cat("The snapshot failed: ", facts.error().what(), "."));
    co_return note("snapshot.failed", snapshot, late ? std::string(kTimeout) : std::string(kFailed));
  }
  snapshot.size_bytes = facts->bytes;
  snapshot.entries = facts->entries;
  std::string sockets = facts->passed_over == 0 ? "" : cat(" ", facts->passed_over, " sockets were left out.");
  move_to(snapshot, SnapshotState::ready, kReady, cat("The snapshot holds ", facts->entries, " changed files.", sockets));
  note("snapshot.ready", snapshot, "ok");
}

Task<Result<runtime::SnapshotFacts>> Snapshots::capture(std::string id, SandboxId sandbox, image::Image base) {
  auto begin = [&images = images_] { return images.begin_snapshot(); };
  auto begun = co_await off_loop(workers_, begin);
  if (!begun) co_return std::move(begun).error();
  std::shared_ptr<image::LayerDraft> draft = *std::move(begun);
  auto facts = co_await runtime_.snapshot(sandbox, draft->dir(), draft->name(), kLimits);
  if (!facts) {
    auto undo = [draft = std::move(draft)]() mutable { return discard(std::move(draft)); };
    co_await off_loop(workers_, std::move(undo));
    co_return facts;
  }
  auto bytes = facts->bytes;
  auto commit = [&images = images_, draft = std::move(draft), id, base = std::move(base), bytes]() mutable {
    auto image = images.commit_snapshot(*draft, id, base, bytes);
    draft.reset();
    return image;
  };
  auto kept = co_await off_loop(workers_, std::move(commit));
  if (!kept) co_return std::move(kept).error();
  co_return facts;
}

void Snapshots::move_to(Snapshot& snapshot, SnapshotState to, std::string_view reason, std::string message) {
  snapshot.state = to;
  snapshot.reason = reason;
  snapshot.message = std::move(message);
  snapshot.changed_at = std::max(service_.now(), snapshot.created_at);
  save(snapshot);
}

// A row that could not be written says Creating after a restart, and the image store then tells what became of it.
void Snapshots::save(const Snapshot& snapshot) {
  auto saved = store_.put_snapshot(snapshot);
  if (!saved) log::error("snapshot not saved", {{"snapshot", snapshot.id.text()}, {"error", saved.error().what()}});
}

void Snapshots::note(std::string action, const Snapshot& snapshot, std::string outcome) {
  Caller self{"system", true, ""};
  auto done =
      audit_.record(self, {action,
                           snapshot.sandbox.text(),
                           std::move(outcome),
                           {{"snapshot", snapshot.id.text()}, {"bytes", cat(snapshot.size_bytes)}, {"entries", cat(snapshot.entries)}}});
  if (!done) log::error("audit record lost", {{"action", action}, {"error", done.error().what()}});
}

const Snapshot* Snapshots::find(const std::string& id, const Caller& caller) const {
  auto found = rows_.find(id);
  return found == rows_.end() || !may_see(found->second, caller) ? nullptr : &found->second;
}

Result<Snapshot> Snapshots::get(const std::string& id, const Caller& caller) const {
  const auto* found = find(id, caller);
  if (found == nullptr) return unknown_snapshot(id);
  return *found;
}

SnapshotListing Snapshots::list(const SnapshotFilter& filter, std::size_t page, std::size_t page_size, const Caller& caller) const {
  std::vector<const Snapshot*> all;
  for (const auto& [id, snapshot] : rows_) {
    bool state = filter.states.empty() || std::ranges::find(filter.states, snapshot.state) != filter.states.end();
    if (!filter.name.empty() && snapshot.name != filter.name) continue;
    if (state && may_see(snapshot, caller) && (filter.sandbox.empty() || snapshot.sandbox.text() == filter.sandbox))
      all.push_back(&snapshot);
  }
  std::ranges::sort(all, [](const Snapshot* a, const Snapshot* b) {
    return a->created_at.micros != b->created_at.micros ? a->created_at.micros > b->created_at.micros : a->id > b->id;
  });
  SnapshotListing out;
  out.total = all.size();
  for (std::size_t i = (page - 1) * page_size; i < all.size() && out.items.size() < page_size; ++i) out.items.push_back(*all[i]);
  return out;
}

Result<> Snapshots::remove(const std::string& id, const Caller& caller) {
  if (find(id, caller) == nullptr) return unknown_snapshot(id);
  auto& snapshot = rows_.find(id)->second;
  if (snapshot.state == SnapshotState::deleting) return Ok{};
  if (snapshot.state == SnapshotState::creating) return conflict(cat("snapshot ", id, " is still being taken"), "SNAPSHOT::INVALID_STATE");
  if (service_.uses_snapshot(id))
    return conflict(cat("a sandbox made from snapshot ", id, " is alive"), "SNAPSHOT::DELETE_CONFLICT")
        .with_hint("delete the sandbox first");
  auto recorded = audit_.record(caller, {"snapshot.delete", snapshot.sandbox.text(), "ok", {{"snapshot", id}}});
  if (!recorded) return std::move(recorded).error().in("audit");
  move_to(snapshot, SnapshotState::deleting, "snapshot_deleting", "The snapshot is being removed.");
  tasks_.spawn("delete snapshot", erase(id));
  return Ok{};
}

// The layer first: a row without a layer can be deleted again, a layer without a row takes a restart.
Task<void> Snapshots::erase(std::string id) {
  auto remove = [&images = images_, id] { return images.remove_snapshot(id); };
  auto removed = co_await off_loop(workers_, std::move(remove));
  if (!removed) co_return log::error("snapshot not removed", {{"snapshot", id}, {"error", removed.error().what()}});
  auto key = SnapshotId::parse(id);
  auto erased = store_.erase_snapshot(*key);
  if (!erased) log::error("snapshot row not removed", {{"snapshot", id}, {"error", erased.error().what()}});
  rows_.erase(id);
}

Result<image::Image> Snapshots::restorable(const std::string& id, const Caller& caller) const {
  const auto* snapshot = find(id, caller);
  if (snapshot == nullptr || snapshot->state == SnapshotState::deleting) return unknown_snapshot(id);
  if (snapshot->state != SnapshotState::ready)
    return conflict(cat("snapshot ", id, " is ", name_of(snapshot->state), ", not Ready"), "SNAPSHOT::NOT_READY").at("snapshotId");
  auto image = images_.snapshot(id);
  if (!image) return conflict(cat("snapshot ", id, " cannot be restored: ", image.error().what()), "SNAPSHOT::INVALID_RESTORE_CONFIG");
  return image;
}

bool Snapshots::needs_image(const std::string& digest_or_name) const {
  return std::ranges::any_of(rows_, [&](const auto& row) {
    const auto& snapshot = row.second;
    bool uses = snapshot.state == SnapshotState::creating || snapshot.state == SnapshotState::ready;
    return uses && (snapshot.image_name == digest_or_name || snapshot.image_digest == digest_or_name);
  });
}

}  // namespace osb::lifecycle
