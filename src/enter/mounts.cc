#include "enter/mounts.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "enter/handed_mount.h"
#include "sys/raw.h"

namespace osb::enter {
namespace {

namespace raw = sys::raw;

constexpr std::uint64_t kBase = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr std::uint64_t kNoExec = kBase | MOUNT_ATTR_NOEXEC;
constexpr std::uint64_t kSealed = kNoExec | MOUNT_ATTR_RDONLY;
// Beside a store on disk; charged to the sandbox's memory limit.
constexpr const char* kScratchBytes = "268435456";
constexpr const char* kScratchInodes = "65536";
// What fill_scratch() puts into a store in memory.
constexpr std::uint64_t kOwnInodes = 7;
constexpr const char* kStaticProcFiles[] = {"cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems"};

// Text of a number on the stack; the kernel takes mount options as strings.
struct Decimal {
  char text[24];
  explicit Decimal(std::uint64_t value) { std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(value)); }
};

int new_tmpfs(const char* bytes, const char* inodes, unsigned attributes) {
  int fs = raw::fsopen("tmpfs");
  if (fs < 0) return -1;
  bool set = raw::fsconfig_string(fs, "source", "sandbox") == 0 && raw::fsconfig_string(fs, "size", bytes) == 0 &&
             raw::fsconfig_string(fs, "nr_inodes", inodes) == 0 && raw::fsconfig_string(fs, "mode", "0755") == 0 &&
             raw::fsconfig_create(fs) == 0;
  int mount = set ? raw::fsmount(fs, attributes) : -1;
  int error = errno;
  ::close(fs);
  errno = error;
  return mount;
}

}  // namespace

// An instance of its own: numbers begin at 0, and at most 64 are open.
int new_terminals(std::uint32_t first_id) {
  int fs = raw::fsopen("devpts");
  if (fs < 0) return -1;
  bool set = raw::fsconfig_string(fs, "source", "devpts") == 0 && raw::fsconfig_string(fs, "ptmxmode", "0666") == 0 &&
             raw::fsconfig_string(fs, "mode", "0620") == 0 && raw::fsconfig_string(fs, "gid", Decimal(first_id + 5).text) == 0 &&
             raw::fsconfig_string(fs, "max", "64") == 0 && raw::fsconfig_create(fs) == 0;
  int mount = set ? raw::fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC) : -1;
  int error = errno;
  ::close(fs);
  errno = error;
  return mount;
}

namespace {

// A bind of an object that is read-only where it comes from is read-only here: one call a name.
bool cover_in_proc(const std::string& with, const char* name) {
  char target[64];
  std::snprintf(target, sizeof target, "proc/%s", name);
  return ::mount(with.c_str(), target, nullptr, MS_BIND, nullptr) == 0;
}

bool write_file_at(int dir, const char* name, const std::string& text) {
  int fd = ::openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  if (fd < 0) return false;
  bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return written;
}

}  // namespace

bool Mounts::own(int dir, const char* name, std::uint32_t inner_id, unsigned mode) {
  auto id = plan_.first_id + inner_id;
  return ::mkdirat(dir, name, mode) == 0 && ::fchownat(dir, name, id, id, AT_SYMLINK_NOFOLLOW) == 0;
}

bool Mounts::go_to_work() {
  ::umask(0);  // directories get the modes they are made with; execd sets its own mask
  return ::chdir(plan_.host.work_dir.c_str()) == 0;
}

bool Mounts::writable_layer() {
  bool made = on_disk() ? disk_store() : memory_store();
  return made && fill_store() && fill_scratch();
}

bool Mounts::memory_store() {
  int mount = new_tmpfs(Decimal(plan_.limits.disk_bytes).text, Decimal(plan_.limits.disk_inodes + kOwnInodes).text, kBase);
  return mount >= 0 && raw::move_mount(mount, AT_FDCWD, "store") == 0;
}

bool Mounts::disk_store() {
  int mount = receive_mount(plan_.disk_socket);
  return mount >= 0 && raw::move_mount(mount, AT_FDCWD, "store") == 0;
}

bool Mounts::fill_store() {
  store_ = ::open("store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (store_ < 0) return false;
  if (writable()) {
    if (!own(store_, "upper", 0, 0755) || ::mkdirat(store_, "upper-work", 0700) != 0) return false;
    for (std::size_t i = 0; plan_.host_view && i < plan_.host.directories.size(); ++i) {
      char name[16];
      std::snprintf(name, sizeof name, "upper-h%zu", i);
      if (!own(store_, name, 0, 0755)) return false;
      std::snprintf(name, sizeof name, "work-h%zu", i);
      if (::mkdirat(store_, name, 0700) != 0) return false;
    }
  }
  if (plan_.snapshot_layers > 0 && (::mkdirat(store_, "workspace-work", 0700) != 0 || ::mkdirat(store_, "home-work", 0700) != 0))
    return false;
  if (!own(store_, "workspace", owner(), 0755) || !own(store_, "home", owner(), 0755)) return false;
  sources_[workspace] = raw::open_tree_clone(store_, "workspace");
  sources_[home] = raw::open_tree_clone(store_, "home");
  return sources_[workspace] >= 0 && sources_[home] >= 0;
}

bool Mounts::memory_scratch() {
  int mount = new_tmpfs(kScratchBytes, kScratchInodes, kBase);
  if (mount < 0 || raw::move_mount(mount, AT_FDCWD, "scratch") != 0) return false;
  scratch_ = ::open("scratch", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return scratch_ >= 0;
}

// A store in memory is scratch enough: each file system more costs every memory group of the host, and every create and end.
bool Mounts::fill_scratch() {
  if (on_disk() && !memory_scratch()) return false;
  if (!on_disk()) scratch_ = store_;
  if (plan_.snapshot_layers > 0 && (::mkdirat(scratch_, "tmp-work", 0700) != 0 || ::mkdirat(scratch_, "var-tmp-work", 0700) != 0))
    return false;
  bool made = own(scratch_, "tmp", 0, 01777) && own(scratch_, "var-tmp", 0, 01777) && own(scratch_, "shm", 0, 01777) &&
              own(scratch_, "run", owner(), 0755) && ::mkdirat(scratch_, "etc", 0755) == 0;
  return made && take(tmp, "tmp") && take(var_tmp, "var-tmp") && take(shm, "shm", kNoExec) && take(run, "run", kNoExec) && make_queues();
}

bool Mounts::take(Source as, const char* path, std::uint64_t attributes) {
  sources_[as] = raw::open_tree_clone(scratch_, path);
  return sources_[as] >= 0 && (attributes == 0 || raw::mount_setattr(sources_[as], attributes) == 0);
}

bool Mounts::make_queues() {
  int fs = raw::fsopen("mqueue");
  sources_[queues] = fs >= 0 && raw::fsconfig_create(fs) == 0 ? raw::fsmount(fs, static_cast<unsigned>(kNoExec)) : -1;
  return sources_[queues] >= 0 && ::close(fs) == 0;
}

bool Mounts::name_files() {
  return write_file_at(scratch_, "etc/hostname", plan_.hostname + "\n") && take(hostname, "etc/hostname", kSealed) &&
         write_file_at(scratch_, "etc/machine-id", plan_.machine_id + "\n") && take(machine_id, "etc/machine-id", kSealed);
}

bool Mounts::image_layers() {
  if (held()) return true;
  auto mount_layer = [&](const char* path, const char* at) {
    int tree = raw::open_tree_clone(AT_FDCWD, path);
    if (tree < 0) return false;
    // The layer keeps ids 0..65535 on disk and shows them as the sandbox's own range.
    return raw::mount_setattr(tree, kBase | MOUNT_ATTR_RDONLY | MOUNT_ATTR_IDMAP, plan_.user_namespace) == 0 &&
           raw::move_mount(tree, AT_FDCWD, at) == 0 && ::close(tree) == 0;
  };
  if (!mount_layer(plan_.host.scaffold_path.c_str(), "l0")) return false;
  char at[16];
  for (std::size_t i = 0; i < plan_.layer_paths.size(); ++i) {
    std::snprintf(at, sizeof at, "l%zu", i + 1);
    if (!mount_layer(plan_.layer_paths[i].c_str(), at)) return false;
  }
  for (std::size_t i = 0; plan_.host_view && i < plan_.host.directories.size(); ++i) {
    std::snprintf(at, sizeof at, "h%zu", i);
    if (!mount_layer(plan_.host.directories[i].path.c_str(), at)) return false;
  }
  return true;
}

// An overlay even where nothing is writable: file locks on a plain bind would be shared between sandboxes.
int Mounts::overlay(const char* lower, const char* upper, const char* work, bool writable) {
  int fs = raw::fsopen("overlay");
  if (fs < 0) return -1;
  bool set = raw::fsconfig_string(fs, "source", "root") == 0 && raw::fsconfig_string(fs, "lowerdir", lower) == 0;
  if (set && writable) {
    // What a snapshot copies must mean the same elsewhere: no notes about where a file or directory came from.
    set = raw::fsconfig_string(fs, "redirect_dir", "nofollow") == 0 && raw::fsconfig_string(fs, "metacopy", "off") == 0 &&
          raw::fsconfig_string(fs, "index", "off") == 0;
  }
  if (set && writable) {
    // volatile: the layer dies with the sandbox, so nobody waits for it to reach a disk.
    set = raw::fsconfig_string(fs, "upperdir", upper) == 0 && raw::fsconfig_string(fs, "workdir", work) == 0 &&
          raw::fsconfig_flag(fs, "volatile") == 0;
  }
  int mount =
      set && raw::fsconfig_create(fs) == 0 ? raw::fsmount(fs, static_cast<unsigned>(kBase | (writable ? 0 : MOUNT_ATTR_RDONLY))) : -1;
  int error = errno;
  ::close(fs);
  errno = error;
  return mount;
}

bool Mounts::root_overlay() {
  if (held()) return (root_ = raw::open_whole_tree_clone(plan_.root, "")) >= 0;
  char lower[512];
  auto used = static_cast<std::size_t>(std::snprintf(lower, sizeof lower, points_ ? "store/points:l0" : "l0"));
  for (std::size_t i = 1; i <= plan_.layer_paths.size(); ++i)
    used += static_cast<std::size_t>(std::snprintf(lower + used, sizeof lower - used, ":l%zu", i));
  root_ = overlay(lower, "store/upper", "store/upper-work", writable());
  return root_ >= 0;
}

bool Mounts::host_view() {
  if (held()) return true;
  for (std::size_t i = 0; plan_.host_view && i < plan_.host.directories.size(); ++i) {
    Lower lower;
    char upper[32];
    char work[32];
    if (!add_snapshots(lower, plan_.host.directories[i].name.c_str()) || !lower.add("h%zu", i) || !lower.add("mask/empty", 0)) return false;
    std::snprintf(upper, sizeof upper, "store/upper-h%zu", i);
    std::snprintf(work, sizeof work, "store/work-h%zu", i);
    host_[i] = overlay(lower.text, upper, work, writable());
    if (host_[i] < 0) return false;
  }
  return true;
}

bool Mounts::Lower::add(const char* format, std::size_t number, const char* path) {
  char next[96];
  int length = std::snprintf(next, sizeof next, format, number, path);
  std::size_t room = sizeof text - used;
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof next || static_cast<std::size_t>(length) + 2 > room)
    return errno = ENAMETOOLONG, false;
  used += static_cast<std::size_t>(std::snprintf(text + used, room, used == 0 ? "%s" : ":%s", next));
  return true;
}

// The directory `path` of every snapshot that has one, topmost first.
bool Mounts::add_snapshots(Lower& lower, const char* path) {
  for (std::size_t i = 1; i <= plan_.snapshot_layers; ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "l%zu/%s", i, path);
    int found = raw::openat2(AT_FDCWD, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (found < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) continue;
    if (found < 0) return false;
    ::close(found);
    if (!lower.add("l%zu/%s", i, path)) return false;
  }
  return true;
}

// The writable places of a sandbox that was made from a snapshot begin with what they held then. Nothing is copied: each is an
// overlay of its own over the directories of the snapshots.
bool Mounts::restored_places() {
  struct Place {
    Source as;
    const char* path;
    const char* upper;
    const char* work;
  };
  bool apart = on_disk();
  for (Place place :
       {Place{workspace, "workspace", "store/workspace", "store/workspace-work"},
        {home, "home/user", "store/home", "store/home-work"},
        {tmp, "tmp", apart ? "scratch/tmp" : "store/tmp", apart ? "scratch/tmp-work" : "store/tmp-work"},
        {var_tmp, "var/tmp", apart ? "scratch/var-tmp" : "store/var-tmp", apart ? "scratch/var-tmp-work" : "store/var-tmp-work"}}) {
    Lower lower;
    if (!add_snapshots(lower, place.path)) return false;
    if (lower.used == 0) continue;
    ::close(sources_[place.as]);
    sources_[place.as] = overlay(lower.text, place.upper, place.work, true);
    if (sources_[place.as] < 0) return false;
  }
  return true;
}

// What will be mounted from the launcher's own directories, taken while their paths still mean something.
bool Mounts::take_sources() {
  if (held()) return true;
  struct Taken {
    Source as;
    std::string path;
  };
  for (const Taken& source : {Taken{hosts, plan_.shape + "/etc/hosts"},
                              {resolv_conf, plan_.shape + "/etc/resolv.conf"},
                              {sys_tree, plan_.shape + "/sys"},
                              {dev_tree, "dev"}}) {
    sources_[source.as] = raw::open_tree_clone(AT_FDCWD, source.path.c_str());
    if (sources_[source.as] < 0) return false;
  }
  return true;
}

// The new root is moved onto "/" and entered by chroot. Unlike pivot_root this does not visit every task of the host;
// what lies beneath stays unreachable because no descriptor to it survives and the filter refuses chroot and mount calls.
bool Mounts::switch_root() {
  if (!take_sources()) return false;
  if (raw::move_mount(root_, AT_FDCWD, "/") != 0 || ::fchdir(root_) != 0 || ::chroot(".") != 0 || ::chdir("/") != 0) return false;
  for (std::size_t i = 0; !held() && plan_.host_view && i < plan_.host.directories.size(); ++i)
    if (!attach(host_[i], plan_.host.directories[i].name.c_str())) return false;
  return attach_own(proc_, "proc");
}

// In a held root these places were looked up, without following a link, when it was built; nothing in it has changed since.
bool Mounts::attach_own(int mount, const char* target) {
  return held() ? raw::move_mount(mount, AT_FDCWD, target) == 0 : attach(mount, target);
}

bool Mounts::attach(int mount, const char* target) {
  int place = raw::openat2(AT_FDCWD, target, O_PATH | O_NOFOLLOW, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (place < 0) return false;
  bool done = raw::move_mount(mount, place, "") == 0;
  int error = errno;
  ::close(place);
  errno = error;
  return done;
}

// Built beside the new root, with all its covers, and then moved in as one tree.
bool Mounts::proc() {
  int fs = raw::fsopen("proc");
  if (fs < 0) return false;
  // Processes of other users are invisible, execd's own among them; its group alone sees all, to end whole process trees.
  bool set = raw::fsconfig_string(fs, "source", "proc") == 0 && raw::fsconfig_string(fs, "hidepid", "invisible") == 0 &&
             raw::fsconfig_string(fs, "gid", Decimal(plan_.first_id + kAgentId).text) == 0;
  if (set && processes_only()) set = raw::fsconfig_string(fs, "subset", "pid") == 0;
  set = set && raw::fsconfig_create(fs) == 0;
  // Read-only as a whole: nothing in it is worth changing from inside, and a cover for each directory of switches would cost a mount.
  proc_ = set ? raw::fsmount(fs, static_cast<unsigned>(kSealed)) : -1;
  ::close(fs);
  return proc_ >= 0 && raw::move_mount(proc_, AT_FDCWD, "proc") == 0;
}

bool Mounts::proc_masks() {
  if (processes_only()) return true;
  const HostFacts& host = plan_.host;
  for (const auto& name : host.proc_masks)
    if (!cover_in_proc("mask/nothing", name.c_str())) return false;
  for (const auto& name : host.proc_dir_masks)
    if (!cover_in_proc("mask/empty", name.c_str())) return false;
  for (const char* name : kStaticProcFiles)
    if (!cover_in_proc(plan_.shape + "/proc/" + name, name)) return false;
  return true;
}

bool Mounts::sys() { return held() || attach(sources_[sys_tree], "sys"); }

bool Mounts::dev() {
  constexpr std::uint64_t kDevices = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY;
  if (!held() && (raw::mount_setattr(sources_[dev_tree], kDevices) != 0 || !attach(sources_[dev_tree], "dev"))) return false;
  int pts = held() ? -1 : new_terminals(plan_.first_id);
  if (!held() && (pts < 0 || !attach(pts, "dev/pts"))) return false;
  return attach_own(sources_[queues], "dev/mqueue") && attach_own(sources_[shm], "dev/shm");
}

bool Mounts::etc() {
  bool shared = held() || (attach(sources_[hosts], "etc/hosts") && attach(sources_[resolv_conf], "etc/resolv.conf"));
  return shared && attach_own(sources_[hostname], "etc/hostname") && attach_own(sources_[machine_id], "etc/machine-id");
}

bool Mounts::scratch() {
  return attach_own(sources_[tmp], "tmp") && attach_own(sources_[var_tmp], "var/tmp") && attach_own(sources_[run], "run") &&
         attach_own(sources_[workspace], "workspace") && attach_own(sources_[home], "home/user");
}

}  // namespace osb::enter
