#include "launch/held_root.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>

#include "enter/mounts.h"
#include "sys/raw.h"

namespace osb::launch {
namespace {

namespace raw = sys::raw;

constexpr std::uint64_t kReadOnly = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY;
constexpr std::uint64_t kDevices = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY;
constexpr std::uint64_t kBelieveHost = 3'000'000'000;
constexpr std::uint64_t kKeepImage = 60'000'000'000;  // an image that nobody uses is not kept busy

Result<Fd> failed(const char* what) { return Error::from_errno(what, errno); }

// The layer keeps ids 0..65535 on disk and shows them as the sandbox's own range.
Result<Fd> layer(const std::string& path, int user_namespace) {
  Fd tree(raw::open_tree_clone(AT_FDCWD, path.c_str()));
  if (!tree || raw::mount_setattr(tree.get(), kReadOnly | MOUNT_ATTR_IDMAP, user_namespace) != 0) return failed("layer");
  return tree;
}

Result<Fd> overlay(const std::vector<Fd>& lowers) {
  Fd fs(raw::fsopen("overlay"));
  if (!fs || raw::fsconfig_string(fs.get(), "source", "root") != 0) return failed("overlay");
  for (const auto& lower : lowers)
    if (raw::fsconfig_descriptor(fs.get(), "lowerdir+", lower.get()) != 0) return failed("overlay layer");
  if (raw::fsconfig_create(fs.get()) != 0) return failed("overlay");
  Fd mount(raw::fsmount(fs.get(), static_cast<unsigned>(kReadOnly)));
  return mount ? Result<Fd>(std::move(mount)) : failed("overlay mount");
}

// The same order of layers as enter/mounts.cc has: the scaffold above all.
Result<Fd> image_root(const enter::EnterPlan& plan) {
  std::vector<Fd> lowers;
  TRY(lowers.emplace_back(), layer(plan.host.scaffold_path, plan.user_namespace));
  for (const auto& path : plan.layer_paths) {
    TRY(lowers.emplace_back(), layer(path, plan.user_namespace));
  }
  return overlay(lowers);
}

Result<Fd> host_directory(const enter::EnterPlan& plan, const enter::HostDirectory& directory, int work) {
  std::vector<Fd> lowers;
  TRY(lowers.emplace_back(), layer(directory.path, plan.user_namespace));
  lowers.emplace_back(raw::open_tree_clone(work, "mask/empty"));  // an overlay without an upper layer wants two
  if (!lowers.back()) return failed("empty layer");
  return overlay(lowers);
}

Result<Fd> look_up(const Fd& root, const char* at) {
  Fd place(raw::openat2(root.get(), at, O_PATH | O_NOFOLLOW, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
  return place ? Result<Fd>(std::move(place)) : failed(at);
}

Result<> attach(const Fd& mount, const Fd& root, const char* at) {
  TRY(auto place, look_up(root, at));
  if (raw::move_mount(mount.get(), place.get(), "") != 0) return Error::from_errno(at, errno);
  return Ok{};
}

Result<> attach_prepared(const Fd& root, int work, const std::string& from, const char* at, std::uint64_t attributes) {
  Fd tree(raw::open_tree_clone(work, from.c_str()));
  if (!tree || (attributes != 0 && raw::mount_setattr(tree.get(), attributes) != 0)) return Error::from_errno(at, errno);
  return attach(tree, root, at);
}

}  // namespace

bool HeldRoot::serves(const enter::EnterPlan& plan, std::uint64_t now) const {
  if (!tree || host_view != plan.host_view || shape != plan.shape || layers != plan.layer_paths) return false;
  return !host_view || now - made_at < kBelieveHost;
}

bool HeldRoot::is_stale(std::uint64_t now) const { return tree && now - made_at >= (host_view ? kBelieveHost : kKeepImage); }

bool can_be_held(const enter::EnterPlan& plan) {
  return plan.policy.root == RootMode::read_only && plan.snapshot_layers == 0 && plan.volumes.empty();
}

// Tried out rather than read off a version: distributions carry such things back.
bool kernel_copies_loose_trees() {
  auto loose = [] {
    Fd fs(raw::fsopen("tmpfs"));
    return fs && raw::fsconfig_create(fs.get()) == 0 ? Fd(raw::fsmount(fs.get(), MOUNT_ATTR_NOSUID)) : Fd();
  };
  Fd tree = loose(), other = loose();
  if (!tree || !other || ::mkdirat(tree.get(), "place", 0700) != 0) return false;
  if (raw::move_mount(other.get(), tree.get(), "place") != 0) return false;
  return static_cast<bool>(Fd(raw::open_whole_tree_clone(tree.get(), "")));
}

Result<HeldRoot> build_held_root(const enter::EnterPlan& plan, int work, std::uint64_t now) {
  HeldRoot held;
  TRY(held.tree, image_root(plan));
  for (std::size_t i = 0; plan.host_view && i < plan.host.directories.size(); ++i) {
    TRY(auto directory, host_directory(plan, plan.host.directories[i], work));
    CHECK_OK(attach(directory, held.tree, plan.host.directories[i].name.c_str()));
  }
  CHECK_OK(attach_prepared(held.tree, work, plan.shape + "/sys", "sys", 0));
  CHECK_OK(attach_prepared(held.tree, work, "dev", "dev", kDevices));
  // All terminals of a sandbox are closed when its processes are gone; the next one begins at number 0 again.
  Fd terminals(enter::new_terminals(plan.first_id));
  if (!terminals) return Error::from_errno("dev/pts", errno);
  CHECK_OK(attach(terminals, held.tree, "dev/pts"));
  CHECK_OK(attach_prepared(held.tree, work, plan.shape + "/etc/hosts", "etc/hosts", 0));
  CHECK_OK(attach_prepared(held.tree, work, plan.shape + "/etc/resolv.conf", "etc/resolv.conf", 0));
  for (const char* name : enter::kOwnPlaces) CHECK_OK(look_up(held.tree, name));  // each sandbox attaches there without looking
  held.layers = plan.layer_paths;
  held.host_view = plan.host_view;
  held.shape = plan.shape;
  held.made_at = now;
  return held;
}

}  // namespace osb::launch
