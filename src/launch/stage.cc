// Volumes of sandboxes that are about to be created: staged by a client, taken by the create of the same id.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "launch/launcher.h"
#include "launch/namespaces.h"
#include "launch/volumes.h"

namespace osb::launch {
namespace {

constexpr std::size_t kMostStaged = 256;
constexpr std::uint64_t kBytesPerInode = 16384;

bool is_plain(std::string_view path) {
  for (auto part : split(path, '/'))
    if (part == ".." || part == ".") return false;
  return true;
}

// Checked by serve already, and again here: serve parses hostile input.
bool is_sound(const wire::StageVolumeRequest& request, const Fd& tree) {
  auto ended = [](const auto& text) { return ::strnlen(text, sizeof text) < sizeof text; };
  if (!ended(request.mount_path) || !ended(request.sub_path)) return false;
  std::string_view path = request.mount_path, sub = request.sub_path;
  if (path.size() < 2 || path[0] != '/' || !is_plain(path) || sub.starts_with('/') || !is_plain(sub)) return false;
  std::string_view volume(request.volume.text, ::strnlen(request.volume.text, sizeof request.volume.text));
  if (volume.empty()) return static_cast<bool>(tree) && sub.empty();
  return is_id_text(volume) && !tree && request.size_bytes >= (16u << 20) && request.size_bytes <= (1ull << 40);
}

}  // namespace

void Launcher::stage_volume(const Pending& to, const wire::StageVolumeRequest& request, Fd tree) {
  std::string id(request.id.text, ::strnlen(request.id.text, sizeof request.id.text));
  if (!is_id_text(id) || find(id) != nullptr || !is_sound(request, tree)) return clients_.reply_status(to, wire::Op::stage_volume, EINVAL);
  if (staged_.size() >= kMostStaged && !staged_.contains(id)) return clients_.reply_status(to, wire::Op::stage_volume, EAGAIN);
  auto& volumes = staged_[id];
  if (volumes.size() >= enter::kMaxVolumes) return clients_.reply_status(to, wire::Op::stage_volume, E2BIG);
  volumes.push_back({to.client, request, std::move(tree)});
  clients_.reply_status(to, wire::Op::stage_volume, 0);
}

void Launcher::drop_staged_of(std::uint64_t client) {
  std::erase_if(staged_, [&](const auto& item) { return item.second.front().client == client; });
}

// The files of a host volume that belong to the owner of its top directory are the payload user's inside, and the other way
// round; nobody else's files are anybody's. Named volumes keep inner ids, as layers do.
Result<> Launcher::plan_volumes(std::vector<StagedVolume>& staged, enter::EnterPlan& plan, VolumeParts& parts) {
  for (auto& volume : staged) {
    enter::PlannedVolume planned;
    planned.mount_path = volume.request.mount_path;
    planned.sub_path = volume.request.sub_path;
    planned.read_only = volume.request.read_only != 0;
    planned.user_namespace = plan.user_namespace;
    std::string name(volume.request.volume.text, ::strnlen(volume.request.volume.text, sizeof volume.request.volume.text));
    if (name.empty()) {
      struct stat info{};
      if (::fstat(volume.tree.get(), &info) != 0) return Error::from_errno("volume", errno);
      auto payload = plan.first_id + (plan.policy.user == UserMode::root ? 0 : enter::kPayloadId);
      TRY(auto mapping, make_volume_namespace(switches_, info.st_uid, info.st_gid, payload));
      planned.tree = volume.tree.get();
      planned.user_namespace = parts.namespaces.emplace_back(std::move(mapping)).get();
    } else {
      auto size = volume.request.size_bytes;
      TRY(auto empty, disk_template(host_.disks_path(), size, std::max<std::uint64_t>(size / kBytesPerInode, 1024), Journal::yes));
      TRY(auto helper, start_volume_helper(host_.volumes_path(), name + ".img", empty,
                                           [this] { return static_cast<bool>(groups_.leave_device_rules()); }));
      planned.socket = parts.sockets.emplace_back(std::move(helper.socket)).get();
      watch_helper(std::move(helper.pidfd));
    }
    plan.volumes.push_back(std::move(planned));
  }
  return Ok{};
}

}  // namespace osb::launch
