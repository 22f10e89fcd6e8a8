#include "lifecycle/volumes.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "lifecycle/off_loop.h"
#include "lifecycle/service.h"
#include "runtime/host_volume.h"

namespace osb::lifecycle {
namespace {

Error not_there(std::string_view name) {
  return Error(Errc::invalid_argument, cat("there is no volume ", json_string(name.substr(0, 80))))
      .with_code("VOLUME::PVC_NOT_FOUND")
      .at("volumes")
      .with_hint("make it with `opensandbox volume create`, or leave createIfNotExists out");
}

// Opens all volumes of the host, one after the other; the first that is refused names itself.
Result<std::vector<Fd>> open_all(const std::vector<VolumeSpec>& specs, const std::vector<std::string>& allowed) {
  std::vector<Fd> trees;
  for (const auto& spec : specs) {
    if (spec.host_path.empty()) {
      trees.emplace_back();
      continue;
    }
    auto tree = runtime::open_host_volume({spec.host_path, spec.sub_path, allowed});
    if (!tree) return std::move(tree).error().in(cat("volume ", spec.name));
    trees.push_back(*std::move(tree));
  }
  return trees;
}

}  // namespace

Volumes::Volumes(asio::io_context& io, Service& service, store::Store& store, audit::Log& audit, runtime::Runtime& runtime,
                 VolumeOptions options)
    : service_(service), store_(store), audit_(audit), runtime_(runtime), options_(std::move(options)), tasks_(io.get_executor()) {}

Volumes::Opened::~Opened() {
  if (!opening) return;
  for (const auto& spec : specs)
    if (auto found = opening->find(spec.volume_id); found != opening->end()) opening->erase(found);
}

Result<> Volumes::start() {
  TRY(auto rows, store_.volumes());
  for (auto& row : rows) {
    auto id = row.id.text();
    rows_.emplace(std::move(id), std::move(row));
  }
  return Ok{};
}

Task<void> Volumes::stop() {
  co_await tasks_.stop();
  workers_.join();
}

// The caller's own first, then one that is everybody's.
const Volume* Volumes::find(const std::string& name, const Caller& caller) const {
  const Volume* shared = nullptr;
  for (const auto& [id, volume] : rows_) {
    if (volume.name != name) continue;
    if (volume.owner == caller.name && !caller.sees_all) return &volume;
    if (volume.owner.empty()) shared = &volume;
    if (caller.sees_all && shared == nullptr) shared = &volume;
  }
  return shared;
}

Result<Volume> Volumes::add(const std::string& name, std::uint64_t size_bytes, bool on_demand, const Caller& caller) {
  if (rows_.size() >= kMaxVolumesKept)
    return Error(Errc::exhausted, cat("this server keeps at most ", kMaxVolumesKept, " volumes")).with_code("SANDBOX::LIMIT_REACHED");
  Volume volume{.id = VolumeId::random(),
                .owner = caller.sees_all ? "" : caller.name,
                .name = name,
                .size_bytes = size_bytes == 0 ? options_.default_bytes : size_bytes,
                .on_demand = on_demand,
                .created_at = service_.now()};
  auto recorded =
      audit_.record(caller, {"volume.create", "", "ok", {{"volume", volume.id.text()}, {"name", name}, {"bytes", cat(volume.size_bytes)}}});
  if (!recorded) return std::move(recorded).error().in("audit");
  if (auto stored = store_.put_volume(volume); !stored) return std::move(stored).error().in("store volume");
  rows_.emplace(volume.id.text(), volume);
  return volume;
}

Result<> Volumes::take_named(VolumeSpec& spec, Opened& opened, const Caller& caller) {
  const auto* found = find(spec.claim, caller);
  if (found == nullptr && !spec.create_if_missing) return not_there(spec.claim);
  std::string id = found != nullptr ? found->id.text() : std::string();
  if (id.empty()) {
    TRY(auto made, add(spec.claim, spec.size_bytes, true, caller));
    id = made.id.text();
    opened.made.push_back(id);
  }
  spec.volume_id = id;
  opening_->insert(id);
  opened.mounts.push_back({Fd(), id, rows_.at(id).size_bytes, spec.read_only, spec.mount_path, spec.sub_path});
  return Ok{};
}

Task<Result<Volumes::Opened>> Volumes::open(std::vector<VolumeSpec> specs, Caller caller) {
  Opened opened;
  if (specs.empty()) co_return opened;
  if (!runtime_.capabilities().volumes)
    co_return Error(Errc::invalid_argument, "this runtime cannot mount volumes").with_code("VOLUME::UNSUPPORTED_BACKEND").at("volumes");
  auto work = [specs, allowed = options_.allowed_host_paths] { return open_all(specs, allowed); };
  CO_TRY(auto trees, co_await off_loop(workers_, std::move(work)));
  opened.specs = std::move(specs);
  opened.opening = opening_;
  for (std::size_t i = 0; i < opened.specs.size(); ++i) {
    auto& spec = opened.specs[i];
    if (!spec.host_path.empty()) {
      opened.mounts.push_back({std::move(trees[i]), "", 0, spec.read_only, spec.mount_path, ""});
    } else if (auto taken = take_named(spec, opened, caller); !taken) {
      undo(opened);
      co_return std::move(taken).error();
    }
  }
  co_return opened;
}

void Volumes::undo(const Opened& opened) {
  for (const auto& id : opened.made) drop(id);
}

bool Volumes::in_use(const std::string& id) const { return opening_->contains(id) || service_.volume_uses(id) > 0; }

// On every way a sandbox ends, expiry among them.
void Volumes::release(const std::string& id, const SandboxSpec& spec) {
  for (const auto& volume : spec.volumes) {
    if (!volume.delete_with_sandbox || volume.volume_id.empty()) continue;
    auto row = rows_.find(volume.volume_id);
    if (row == rows_.end() || !row->second.on_demand || in_use(volume.volume_id)) continue;
    Caller self{"system", true, ""};
    auto recorded = audit_.record(self, {"volume.delete", id, "ok", {{"volume", volume.volume_id}, {"name", row->second.name}}});
    if (!recorded) log::error("audit record lost", {{"action", "volume.delete"}, {"error", recorded.error().what()}});
    drop(volume.volume_id);
  }
}

void Volumes::drop(const std::string& id) {
  auto key = VolumeId::parse(id);
  if (auto erased = store_.erase_volume(*key); !erased) log::error("volume row stays", {{"volume", id}, {"error", erased.error().what()}});
  rows_.erase(id);
  tasks_.spawn("remove volume", remove_image(id));
}

Task<void> Volumes::remove_image(std::string id) {
  auto remove = [&runtime = runtime_, id] { return runtime.remove_volume(id); };
  auto removed = co_await off_loop(workers_, std::move(remove));
  if (!removed) log::error("image of a volume stays", {{"volume", id}, {"error", removed.error().what()}});
}

std::vector<VolumeListing> Volumes::list(const Caller& caller) const {
  std::vector<VolumeListing> out;
  for (const auto& [id, volume] : rows_)
    if (caller.sees_all || volume.owner.empty() || volume.owner == caller.name) out.push_back({volume, service_.volume_uses(id)});
  std::ranges::sort(out, [](const auto& a, const auto& b) { return a.volume.name < b.volume.name; });
  return out;
}

Result<Volume> Volumes::create(const std::string& name, std::uint64_t size_bytes, const Caller& caller) {
  if (find(name, caller) != nullptr)
    return Error(Errc::conflict, cat("there is a volume ", name, " already")).with_code("VOLUME::ALREADY_EXISTS").at("name");
  return add(name, size_bytes, false, caller);
}

Result<> Volumes::remove(const std::string& name, const Caller& caller) {
  const auto* volume = find(name, caller);
  if (volume == nullptr)
    return Error(Errc::not_found, cat("there is no volume ", json_string(name.substr(0, 80)))).with_code("VOLUME::PVC_NOT_FOUND");
  if (volume->owner.empty() && !caller.sees_all)
    return Error(Errc::permission_denied, "The volume is everybody's; only a key that sees all sandboxes may remove it.");
  auto id = volume->id.text();
  if (in_use(id))
    return Error(Errc::conflict, cat("a sandbox uses volume ", name)).with_code("VOLUME::IN_USE").with_hint("delete the sandbox first");
  auto recorded = audit_.record(caller, {"volume.delete", "", "ok", {{"volume", id}, {"name", name}}});
  if (!recorded) return std::move(recorded).error().in("audit");
  drop(id);
  return Ok{};
}

}  // namespace osb::lifecycle
