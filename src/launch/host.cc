#include "launch/host.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "launch/device_filter.h"
#include "launch/held_root.h"
#include "launch/host_view.h"
#include "launch/sealed_program.h"
#include "launch/shape.h"
#include "model/launch_wire.h"
#include "sys/kernel_file.h"
#include "sys/raw.h"

namespace osb::launch {
namespace {

constexpr std::size_t kMaxShapes = 16;

// The copy of the mount table that each sandbox starts from is paid for by every create, so it holds only what a create needs.
Result<> enter_private_mounts(const HostOptions& options) {
  if (::unshare(CLONE_NEWNS) != 0) return Error::from_errno("unshare mounts", errno);
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return Error::from_errno("make mounts private", errno);
  TRY(auto table, sys::read_file("/proc/self/mounts"));
  std::vector<std::string> points;
  for (auto line : split(table, '\n')) {
    auto words = split(line, ' ');
    if (words.size() > 1) points.emplace_back(words[1]);
  }
  auto holds = [](const std::string& path, const std::string& point) { return path == point || path.starts_with(point + "/"); };
  auto needed = [&](const std::string& point) {
    if (point == "/" || point == "/proc" || point == "/dev") return true;
    // Everything at or below what the host image shows stays: a detached mount would uncover what lies under it.
    if (holds(point, "/usr") || holds(point, "/bin") || holds(point, "/lib")) return true;
    return holds(options.run_dir, point) || holds(options.data_dir, point);
  };
  for (auto point = points.rbegin(); point != points.rend(); ++point)
    if (!needed(*point)) ::umount2(point->c_str(), MNT_DETACH);
  return Ok{};
}

Result<> write_tree(int dir, const std::string& top, const std::vector<TextFile>& files) {
  CHECK_OK(sys::make_dir_at(dir, top.c_str(), 0755));
  for (const auto& file : files) {
    std::string path = top + "/" + file.path;
    for (auto at = path.find('/', top.size() + 1); at != std::string::npos; at = path.find('/', at + 1))
      CHECK_OK(sys::make_dir_at(dir, path.substr(0, at).c_str(), 0755));
    CHECK_OK(sys::write_new_file(dir, path.c_str(), file.content, 0444));
  }
  return Ok{};
}

// Files only the host's root may open need no cover: no id of a sandbox is the host's root, and no capability of a sandbox
// reaches over to it. Covers are paid for by every create.
std::vector<std::string> open_to_others(const std::vector<const char*>& names) {
  std::vector<std::string> found;
  for (const auto& name : existing_in_proc(names)) {
    struct stat info{};
    bool closed = ::stat(cat("/proc/", name).c_str(), &info) == 0 && info.st_uid == 0 && (info.st_mode & 077) == 0;
    if (!closed) found.push_back(name);
  }
  return found;
}

}  // namespace

Result<Host> Host::prepare(const HostOptions& options) {
  Host host;
  host.options_ = options;
  host.facts_.landlock_abi = sys::raw::landlock_abi();
  if (host.facts_.landlock_abi < 1)
    return Error(Errc::unavailable, "this kernel has no Landlock").with_hint("boot with lsm=landlock,... (Linux 5.13 or later)");
  TRY(auto last, sys::read_file("/proc/sys/kernel/cap_last_cap", 64));
  host.facts_.last_capability = parse_int<int>(split(last, '\n')[0]).value_or(40);
  TRY(host.dev_null_, sys::open_at(AT_FDCWD, "/dev/null", O_RDWR));
  host.facts_.dev_null = host.dev_null_.get();
  host.facts_.scaffold_path = host.scaffold_path();
  TRY(host.execd_, seal_program(options.execd));
  CHECK_OK(host.compile_filters());
  host.list_proc();
  host.facts_.directories = host_directories();
  CHECK_OK(sys::make_dirs(options.data_dir, 0700));
  CHECK_OK(host.build_scaffold());
  CHECK_OK(enter_private_mounts(options));
  CHECK_OK(host.build_work_dir());
  host.holds_roots_ = kernel_copies_loose_trees();
  return host;
}

Result<> Host::build_work_dir() {
  facts_.work_dir = options_.run_dir + "/work";
  CHECK_OK(sys::make_dirs(work_dir(), 0700));
  if (::mount("opensandbox", work_dir().c_str(), "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64m") != 0)
    return Error::from_errno("mount work tmpfs", errno);
  TRY(work_, sys::open_at(AT_FDCWD, work_dir().c_str(), O_RDONLY | O_DIRECTORY));
  for (const char* name : {"store", "scratch", "mask", "shapes", "proc"}) CHECK_OK(sys::make_dir_at(work_.get(), name, 0755));
  for (std::size_t i = 0; i <= wire::kMaxLayers + 1; ++i) CHECK_OK(sys::make_dir_at(work_.get(), cat("l", i).c_str(), 0755));
  for (std::size_t i = 0; i < enter::kMaxVolumes; ++i) CHECK_OK(sys::make_dir_at(work_.get(), cat("v", i).c_str(), 0755));
  for (std::size_t i = 0; i < facts_.directories.size(); ++i) CHECK_OK(sys::make_dir_at(work_.get(), cat("h", i).c_str(), 0755));
  CHECK_OK(mount_memory("mask"));
  CHECK_OK(sys::make_dir_at(work_.get(), "mask/empty", 0555));
  CHECK_OK(sys::write_new_file(work_.get(), "mask/nothing", "", 0000));
  CHECK_OK(make_read_only("mask"));
  return build_dev();
}

bool Host::is_whole() const {
  struct stat ours{}, there{};
  if (::fstat(work_.get(), &ours) != 0 || ::stat(work_dir().c_str(), &there) != 0) return false;
  bool mounted = ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
  auto has = [&](const std::string& path) { return ::stat(path.c_str(), &there) == 0; };
  return mounted && has(scaffold_path() + "/proc") && has(volumes_path()) && has(disks_path()) && has(options_.run_dir + "/sandboxes");
}

bool Host::works_in(std::uint64_t device, std::uint64_t inode) const {
  struct stat there{};
  return ::stat(options_.data_dir.c_str(), &there) == 0 && there.st_dev == device && there.st_ino == inode;
}

// Clones of a mount inherit its flags: what is read-only here is read-only in every sandbox without another call.
Result<> Host::mount_memory(const std::string& name) {
  std::string path = work_dir() + "/" + name;
  if (::mount("opensandbox", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=1m") != 0)
    return Error::from_errno("mount " + name, errno);
  return Ok{};
}

Result<> Host::make_read_only(const std::string& name) {
  std::string path = work_dir() + "/" + name;
  if (::mount(nullptr, path.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return Error::from_errno("seal " + name, errno);
  return Ok{};
}

// Device nodes live on one tmpfs of ours; sandboxes see it read-only, and a node opens for writing all the same.
Result<> Host::build_dev() {
  CHECK_OK(sys::make_dir_at(work_.get(), "dev", 0755));
  struct Node {
    const char* name;
    unsigned major, minor;
  };
  for (Node node :
       {Node{"null", 1, 3}, Node{"zero", 1, 5}, Node{"full", 1, 7}, Node{"random", 1, 8}, Node{"urandom", 1, 9}, Node{"tty", 5, 0}}) {
    std::string path = cat("dev/", node.name);
    if (::mknodat(work_.get(), path.c_str(), S_IFCHR | 0666, makedev(node.major, node.minor)) != 0)
      return Error::from_errno("mknod " + path, errno);
    if (::fchmodat(work_.get(), path.c_str(), 0666, 0) != 0) return Error::from_errno("chmod " + path, errno);
  }
  for (const char* dir : {"dev/pts", "dev/shm", "dev/mqueue"}) CHECK_OK(sys::make_dir_at(work_.get(), dir, 0755));
  struct Link {
    const char* target;
    const char* name;
  };
  for (Link link : {Link{"/proc/self/fd", "dev/fd"}, Link{"/proc/self/fd/0", "dev/stdin"}, Link{"/proc/self/fd/1", "dev/stdout"},
                    Link{"/proc/self/fd/2", "dev/stderr"}, Link{"pts/ptmx", "dev/ptmx"}})
    if (::symlinkat(link.target, work_.get(), link.name) != 0) return Error::from_errno(cat("symlink ", link.name), errno);
  return Ok{};
}

// The topmost layer of every root. Its real directories and files hide whatever an image put at these names, so a
// mount target is never a symlink of the image's choosing.
Result<> Host::build_scaffold() {
  std::string top = scaffold_path();
  CHECK_OK(sys::make_dirs(top, 0755));
  TRY(auto dir, sys::open_at(AT_FDCWD, top.c_str(), O_RDONLY | O_DIRECTORY));
  for (const char* name : {"proc", "sys", "dev", "tmp", "var", "var/tmp", "run", "etc", "workspace", "home", "home/user"})
    CHECK_OK(sys::make_dir_at(dir.get(), name, 0755));
  for (const char* name : {"etc/hosts", "etc/resolv.conf", "etc/hostname", "etc/machine-id"}) {
    auto made = sys::write_new_file(dir.get(), name, "", 0444);
    if (!made && made.error().sys() != EEXIST) return made;
  }
  CHECK_OK(sys::make_dirs(volumes_path(), 0700));
  return sys::make_dirs(disks_path(), 0700);
}

Result<> Host::compile_filters() {
  for (auto profile : {SyscallProfile::minimal, SyscallProfile::standard, SyscallProfile::permissive}) {
    TRY(auto filter, compile_filter(profile));
    filters_.push_back(std::move(filter));
  }
  return Ok{};
}

std::vector<sock_filter> Host::filter(SyscallProfile profile) const {
  auto program = filters_[static_cast<std::size_t>(profile)].program();
  return {program.filter, program.filter + program.len};
}

void Host::list_proc() {
  facts_.proc_masks = open_to_others(masked_proc_files());
  facts_.proc_dir_masks = existing_in_proc(masked_proc_dirs());
}

void Host::forget_oldest_shape() {
  auto oldest = shapes_.find(shape_order_.front());
  std::string path = work_dir() + "/" + oldest->second;
  ::umount2(path.c_str(), MNT_DETACH);
  ::rmdir(path.c_str());
  shapes_.erase(oldest);
  shape_order_.pop_front();
}

Result<std::string> Host::shape(const Limits& limits) {
  if (auto known = shapes_.find(limits); known != shapes_.end()) return known->second;
  // Clients choose limits freely, so only the latest shapes are kept. Each is a file system of its own: forgetting one
  // takes nothing away from the sandboxes that have it mounted.
  if (shapes_.size() >= kMaxShapes) forget_oldest_shape();
  std::string top = cat("shapes/", next_shape_++);
  CHECK_OK(sys::make_dir_at(work_.get(), top.c_str(), 0755));
  CHECK_OK(mount_memory(top));
  CHECK_OK(write_tree(work_.get(), top + "/proc", proc_files(limits)));
  CHECK_OK(write_tree(work_.get(), top + "/sys", sys_files(limits)));
  CHECK_OK(write_tree(work_.get(), top + "/etc", etc_files()));
  CHECK_OK(make_read_only(top));
  shape_order_.push_back(limits);
  shapes_.emplace(limits, top);
  return top;
}

}  // namespace osb::launch
