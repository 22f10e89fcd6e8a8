// A create whose image is not here: answered at once as Pending, finished when the pull is.
#include "base/log.h"
#include "base/text.h"
#include "image/reference.h"
#include "lifecycle/errors.h"
#include "lifecycle/service.h"

namespace osb::lifecycle {
namespace {

constexpr std::string_view kPulling = "image_pulling";
constexpr std::string_view kPullFailed = "image_pull_failed";
constexpr auto kLongWait = std::chrono::hours(24);

// What the owner reads: a failure of ours names paths and internals, the log has those.
std::string told(const Error& error) {
  if (error.kind() == Errc::internal) return "The server failed to pull the image; its log tells why.";
  return error.hint().empty() ? error.what() : cat(error.what(), " (", error.hint(), ")");
}

}  // namespace

// Only for names that say where to pull from; `missing` is why the image was not found.
bool Service::may_pull(const std::string& reference, const Error& missing) const {
  return options_.pull_missing && missing.kind() == Errc::not_found && images_.check_pullable(reference);
}

void Service::mark_pending(Entry& entry) const {
  auto& sandbox = entry.sandbox;
  auto name = image::full_name(image_for(sandbox.spec.image));
  if (name) entry.image_name = *std::move(name);
  sandbox.status.state = State::pending;
  sandbox.status.reason = kPulling;
  sandbox.status.message = "The image is being pulled.";
}

// Recorded and stored like any create: after a restart the client's id still means something.
Result<SandboxPtr> Service::begin_pending(EntryPtr entry, ImageAuth auth, const Caller& caller) {
  auto id = entry->sandbox.id;
  auto reference = image_for(entry->sandbox.spec.image);
  CHECK_OK(record(caller, "sandbox.create", id.text(), create_details(*entry)));
  auto stored = entry->create_key ? store_.put(entry->sandbox, *entry->create_key) : store_.put(entry->sandbox);
  if (!stored) return std::move(stored).error().in("store sandbox");
  entry->create_key.reset();
  entry->events = begin_events(entry->sandbox);
  auto placed = std::make_unique<Sandbox>(table_.insert(std::move(*entry)).sandbox);
  arm_timer();
  auto ticket = pulls_.join(reference, {std::move(auth.username), std::move(auth.password)});
  waiting_[id.text()] = ticket;
  tasks_.spawn("create when pulled", finish_pending(id, std::move(ticket), caller));
  return placed;
}

// The entry, as long as it waits for its image and nobody took it away.
Entry* Service::pending(const SandboxId& id) {
  auto* entry = table_.find(id.text());
  bool waits = entry != nullptr && entry->leaving == Leaving::no && entry->sandbox.status.state == State::pending;
  return waits ? entry : nullptr;
}

Task<void> Service::finish_pending(SandboxId id, std::shared_ptr<PullTicket> ticket, Caller caller) {
  while (!ticket->result() && pending(id) != nullptr) co_await ticket->wait(kLongWait);
  waiting_.erase(id.text());
  if (pending(id) == nullptr) co_return;
  auto pulled = *ticket->result();
  ticket.reset();
  auto* entry = pending(id);
  if (!pulled) co_return fail_pending(*entry, std::string(kPullFailed), pulled.error());
  entry->image_name = pulled->name;
  entry->image_digest = entry->sandbox.spec.image_digest = pulled->digest;
  entry->sandbox.spec.layers = pulled->layers;
  entry->image_hold = hold_image(*pulled);
  note("image.pull", id.text(), {{"image", pulled->name}, {"digest", pulled->digest}});
  spares_.leave_stale(images_);
  pools_->refresh();
  co_await start_pending(id, std::move(caller));
  co_await collect_images();
}

Task<void> Service::start_pending(SandboxId id, Caller caller) {
  auto wanted_volumes = pending(id)->sandbox.spec.volumes;
  auto volumes = co_await volumes_->open(std::move(wanted_volumes), std::move(caller));
  auto* entry = pending(id);
  if (entry == nullptr) {
    if (volumes) volumes_->undo(*volumes);
    co_return;
  }
  if (!volumes) co_return fail_pending(*entry, "start_failed", volumes.error());
  entry->sandbox.spec.volumes = volumes->specs;
  runtime_.stage_volumes(id, std::move(volumes->mounts));
  SandboxSpec effective = entry->sandbox.spec;
  effective.image = image_for(effective.image);
  auto deadline = entry->sandbox.deadline_boot_nanos;
  auto made = co_await runtime_.create(id, std::move(effective), deadline);
  entry = pending(id);
  // Deleted or expired meanwhile: whoever did that may have been too early for the runtime.
  if (entry == nullptr && made) co_await undo_create(id);
  if (entry == nullptr || !made) volumes_->undo(*volumes);
  if (entry == nullptr) co_return;
  if (!made) co_return fail_pending(*entry, "start_failed", coded(std::move(made).error(), "DOCKER::SANDBOX_START_FAILED"));
  auto moved = move_to(entry->sandbox, State::running, "CONTAINER_RUNNING", "The sandbox is running.");
  if (!moved) log::error("state not set", {{"sandbox", id.text()}, {"error", moved.error().what()}});
  auto wanted = entry->sandbox.deadline_boot_nanos;
  if (wanted == deadline) co_return;
  auto set = co_await runtime_.set_deadline(id, wanted);  // renewed while it was being made
  if (!set) log::warn("deadline not set", {{"sandbox", id.text()}, {"error", set.error().what()}});
}

void Service::fail_pending(Entry& entry, std::string reason, const Error& error) {
  auto id = entry.sandbox.id.text();
  entry.image_hold.reset();
  log::warn("sandbox not started", {{"sandbox", id}, {"reason", reason}, {"error", error.what()}});
  note("sandbox.end", id, {{"state", "Failed"}, {"reason", reason}, {"error", error.what()}});
  auto moved = move_to(entry.sandbox, State::failed, std::move(reason), told(error));
  if (!moved) log::error("failure not applied", {{"sandbox", id}, {"error", moved.error().what()}});
  while (table_.finished() > options_.max_finished) remove(*table_.oldest_finished());
}

// After a restart: the pull died with the old process, and the credentials with it.
void Service::give_up_pending(Sandbox record) {
  auto id = record.id.text();
  place(std::move(record));
  table_.find(id)->image_hold.reset();
  auto moved = move_to(table_.find(id)->sandbox, State::failed, std::string(kPullFailed),
                       "The server restarted while the image was being pulled; create the sandbox again, what was downloaded is kept.");
  if (!moved) log::error("interrupted create not marked", {{"sandbox", id}, {"error", moved.error().what()}});
  note("sandbox.end", id, {{"state", "Failed"}, {"reason", std::string(kPullFailed)}});
}

}  // namespace osb::lifecycle
