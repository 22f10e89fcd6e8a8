#include "lifecycle/service.h"

#include <algorithm>
#include <fstream>

#include "base/log.h"
#include "base/text.h"
#include "lifecycle/errors.h"

namespace osb::lifecycle {
namespace {

constexpr std::int64_t kSaveAgainNanos = 1'000'000'000;

std::string kernel_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

// States that pass by themselves are not written down: after a restart the runtime says what is true. Pending is: its
// client holds an id that must mean something then.
bool is_durable(State state) { return state == State::pending || state == State::running || state == State::paused || is_finished(state); }

bool may_see(const Entry& entry, const Caller& caller) { return caller.sees_all || entry.sandbox.owner == caller.name; }

bool matches(const Sandbox& sandbox, const Filter& filter) {
  const auto& states = filter.states;
  if (!states.empty() && std::find(states.begin(), states.end(), sandbox.status.state) == states.end()) return false;
  if (!filter.extension.empty() && !sandbox.spec.extensions.contains(filter.extension)) return false;
  return std::all_of(filter.metadata.begin(), filter.metadata.end(), [&](const auto& wanted) {
    auto found = sandbox.spec.metadata.find(wanted.first);
    return found != sandbox.spec.metadata.end() && found->second == wanted.second;
  });
}

AdmissionLimits admission_limits(const Options& options) {
  auto limits = options.admission;
  limits.sandboxes = options.max_sandboxes;
  return limits;
}

}  // namespace

Error unknown_sandbox(const SandboxId& id) {
  return Error(Errc::not_found, cat("sandbox ", id.text(), " does not exist")).with_code("DOCKER::SANDBOX_NOT_FOUND");
}

Service::Service(asio::io_context& io, store::Store& store, audit::Log& audit, image::Store& images, runtime::Runtime& runtime,
                 Options options)
    : io_(io),
      store_(store),
      audit_(audit),
      images_(images),
      runtime_(runtime),
      options_(std::move(options)),
      entrance_(
          io.get_executor(), admission_limits(options_),
          [this](const std::string& key) { return Standing{table_.live(), table_.live_of(key), table_.promised_bytes()}; },
          options_.host_room),
      create_keys_(io, store),
      timer_(io.get_executor()),
      pulls_(io, images),
      spares_(io, runtime, options_.spares,
              {[this] { return entrance_.creates(); }, [this](const std::string& pool) { return table_.of_pool(pool); }}),
      tasks_(io.get_executor()) {
  if (options_.boot_id.empty()) options_.boot_id = kernel_boot_id();
  snapshots_ = std::make_unique<Snapshots>(io, *this, store, audit, images, runtime);
  volumes_ = std::make_unique<Volumes>(io, *this, store, audit, runtime, options_.volumes);
  pools_ = std::make_unique<Pools>(*this, store, audit, spares_);
}

Service::~Service() = default;

void Service::set_options(Options options) {
  options.boot_id = options_.boot_id;
  options.wall_clock = options_.wall_clock;
  options.host_room = options_.host_room;
  options_ = std::move(options);
  volumes_->set_options(options_.volumes);
  spares_.set_options(options_.spares);
  entrance_.set_limits(admission_limits(options_));
  pools_->set_configured(options_.pools);
}

Task<void> Service::stop() {
  stopping_ = true;
  co_await snapshots_->stop();
  co_await volumes_->stop();
  co_await tasks_.stop();
  waiting_.clear();
  co_await pulls_.stop();
  co_await spares_.stop();
}

Result<Sandbox> Service::get(const SandboxId& id, const Caller& caller) const {
  TRY(const auto* sandbox, look_at(id, caller));
  return *sandbox;
}

Result<const Sandbox*> Service::look_at(const SandboxId& id, const Caller& caller) const {
  const auto* entry = table_.find(id.text());
  if (entry == nullptr || entry->leaving != Leaving::no || !may_see(*entry, caller)) return unknown_sandbox(id);
  return &entry->sandbox;
}

const Sandbox* Service::find(const SandboxId& id) const {
  const auto* entry = table_.find(id.text());
  return entry == nullptr || entry->leaving != Leaving::no ? nullptr : &entry->sandbox;
}

bool Service::has_extension(const SandboxId& id, std::string_view name) const {
  const auto* entry = table_.find(id.text());
  return entry && entry->sandbox.spec.extensions.contains(name);
}

std::string_view Service::owner_of(std::string_view id) const {
  const auto* entry = table_.find(id);
  return entry == nullptr || entry->leaving != Leaving::no ? std::string_view() : std::string_view(entry->sandbox.owner);
}

Result<EventLog> Service::events(const SandboxId& id, const Caller& caller) const {
  const auto* entry = table_.find(id.text());
  if (entry == nullptr || entry->leaving != Leaving::no || !may_see(*entry, caller)) return unknown_sandbox(id);
  return entry->events;
}

Listing Service::list(const Filter& filter, std::size_t page, std::size_t page_size, const Caller& caller) const {
  Listing out;
  std::size_t first = page > 0 && page_size > 0 ? (page - 1) * page_size : 0;
  if (page > 1 && first / page_size != page - 1) first = static_cast<std::size_t>(-1);  // a page past any number of sandboxes
  table_.each_newest_first([&](const Entry& entry) {
    if (entry.leaving != Leaving::no || !may_see(entry, caller) || !matches(entry.sandbox, filter)) return;
    if (out.total >= first && out.items.size() < page_size) out.items.push_back(entry.sandbox);
    ++out.total;
  });
  return out;
}

bool Service::image_in_use(const std::string& digest_or_name) const {
  bool used = false;
  table_.each([&](const Entry& entry) {
    if (is_finished(entry.sandbox.status.state)) return;
    used = used || entry.image_name == digest_or_name || entry.image_digest == digest_or_name || entry.sandbox.spec.image == digest_or_name;
  });
  for (const auto& [id, making] : making_) used = used || making.image_name == digest_or_name || making.image_digest == digest_or_name;
  return used || snapshots_->needs_image(digest_or_name);
}

Result<SnapshotSource> Service::snapshot_source(const SandboxId& id, const Caller& caller) const {
  const auto* entry = table_.find(id.text());
  if (entry == nullptr || entry->leaving != Leaving::no || !may_see(*entry, caller)) return unknown_sandbox(id);
  return SnapshotSource{entry->sandbox, entry->image_name, entry->image_digest};
}

std::size_t Service::volume_uses(const std::string& volume_id) const {
  std::size_t uses = 0;
  table_.each([&](const Entry& entry) {
    const auto& volumes = entry.sandbox.spec.volumes;
    bool has = std::ranges::any_of(volumes, [&](const VolumeSpec& volume) { return volume.volume_id == volume_id; });
    if (has && !is_finished(entry.sandbox.status.state)) ++uses;
  });
  return uses;
}

bool Service::uses_snapshot(const std::string& id) const {
  bool used = making_from_.contains(id);
  table_.each(
      [&](const Entry& entry) { used = used || (!is_finished(entry.sandbox.status.state) && entry.sandbox.spec.snapshot_id == id); });
  return used;
}

Result<Entry*> Service::owned(const SandboxId& id, const Caller& caller) {
  auto* entry = table_.find(id.text());
  if (entry == nullptr || entry->leaving != Leaving::no || !may_see(*entry, caller)) return unknown_sandbox(id);
  return entry;
}

Result<> Service::move_to(Sandbox& sandbox, State to, std::string reason, std::string message) {
  auto from = sandbox.status.state;
  if (!may_go(from, to))
    return Error(Errc::internal, cat("sandbox ", sandbox.id.text(), " cannot go from ", name_of(from), " to ", name_of(to)));
  sandbox.status = {to, std::move(reason), std::move(message), options_.wall_clock()};
  if (auto* entry = table_.find(sandbox.id.text())) {
    table_.changed(*entry);
    if (is_durable(to)) entry->events.add(change_event(from, sandbox.status));
  }
  if (is_durable(to)) save(sandbox.id.text());
  arm_timer();
  return Ok{};
}

void Service::save(const std::string& id) {
  const auto* entry = table_.find(id);
  auto key = SandboxId::parse(id);
  auto saved = entry != nullptr ? store_.put(entry->sandbox) : store_.erase(*key);
  if (saved) {
    unsaved_.erase(id);
    return;
  }
  if (unsaved_.insert(id).second) log::error("record not saved, will try again", {{"sandbox", id}, {"error", saved.error().what()}});
  save_again_at_ = boot_now_nanos() + kSaveAgainNanos;
  arm_timer();
}

void Service::remove(const std::string& id) {
  SandboxSpec spec;
  if (auto* entry = table_.find(id)) spec = std::move(entry->sandbox.spec);
  table_.remove(id);
  if (!pool_of(spec).empty()) spares_.look_again();
  volumes_->release(id, spec);
  save(id);
  arm_timer();
  if (auto waits = waiting_.find(id); waits != waiting_.end()) waits->second->wake();
}

void Service::set_leaving(Entry& entry, Leaving leaving) {
  entry.leaving = leaving;
  table_.changed(entry);
  if (!pool_of(entry.sandbox.spec).empty()) spares_.look_again();
  arm_timer();
  if (auto waits = waiting_.find(entry.sandbox.id.text()); waits != waiting_.end()) waits->second->wake();
}

Result<> Service::record(const Caller& caller, std::string action, const std::string& id, Details detail) {
  auto done = audit_.record(caller, {std::move(action), id, "ok", std::move(detail)});
  if (!done) return std::move(done).error().in("audit");
  return Ok{};
}

void Service::note_failure(const Caller& caller, std::string action, const std::string& id, const Error& error) {
  auto outcome = error.code().empty() ? std::string("GENERAL::UNKNOWN_ERROR") : error.code();
  auto done = audit_.record(caller, {action, id, outcome, {{"error", error.what()}}});
  if (!done) log::error("audit record lost", {{"action", action}, {"sandbox", id}, {"error", done.error().what()}});
}

void Service::note(std::string action, const std::string& id, Details detail) {
  Caller self{"system", true, ""};
  auto done = record(self, action, id, std::move(detail));
  if (!done) log::error("audit record lost", {{"action", action}, {"sandbox", id}, {"error", done.error().what()}});
}

}  // namespace osb::lifecycle
