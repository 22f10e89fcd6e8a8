#include "confine/view.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "launch/shape.h"
#include "sys/raw.h"

namespace osb::confine {
namespace {

namespace raw = sys::raw;

constexpr std::uint64_t kBase = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr std::uint64_t kNoExec = kBase | MOUNT_ATTR_NOEXEC;
constexpr std::uint64_t kSealed = kNoExec | MOUNT_ATTR_RDONLY;
constexpr std::uint64_t kScratchBytes = 256ull << 20;
constexpr std::uint64_t kScratchInodes = 65'536;
constexpr std::uint64_t kStageBytes = 4ull << 20;
constexpr std::uint64_t kStageInodes = 2'048;
constexpr const char* kDevices[] = {"null", "zero", "full", "random", "urandom", "tty"};

// Closes on every way out and keeps errno.
class Handle {
 public:
  explicit Handle(int fd) : fd_(fd) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    int error = errno;
    if (fd_ >= 0) ::close(fd_);
    errno = error;
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

int new_memory(std::uint64_t bytes, std::uint64_t inodes, std::uint64_t attributes) {
  Handle fs(raw::fsopen("tmpfs"));
  if (!fs) return -1;
  std::string size = std::to_string(bytes), most = std::to_string(inodes);
  bool set = raw::fsconfig_string(fs.get(), "source", "sandbox") == 0 && raw::fsconfig_string(fs.get(), "size", size.c_str()) == 0 &&
             raw::fsconfig_string(fs.get(), "nr_inodes", most.c_str()) == 0 && raw::fsconfig_string(fs.get(), "mode", "0755") == 0 &&
             raw::fsconfig_create(fs.get()) == 0;
  return set ? raw::fsmount(fs.get(), static_cast<unsigned>(attributes)) : -1;
}

bool put_memory(const char* at, std::uint64_t bytes, std::uint64_t inodes, std::uint64_t attributes) {
  Handle mount(new_memory(bytes, inodes, attributes));
  return mount && raw::move_mount(mount.get(), AT_FDCWD, at) == 0;
}

bool make_dirs_to(const std::string& path) {
  for (auto at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1))
    if (::mkdir(path.substr(0, at).c_str(), 0755) != 0 && errno != EEXIST) return false;
  return true;
}

bool write_file(const std::string& path, const std::string& text, mode_t mode = 0444) {
  if (!make_dirs_to(path)) return false;
  Handle file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

// A copy of one directory or file, without what is mounted below it, in a place of its own.
bool View::show(const char* from, const char* at, std::uint64_t attributes) {
  Handle tree(raw::open_tree_clone(AT_FDCWD, from));
  return tree && raw::mount_setattr(tree.get(), attributes) == 0 && raw::move_mount(tree.get(), AT_FDCWD, at) == 0;
}

// Everything that is the sandbox's own and never changes lies in one small file system, sealed when it is complete.
bool View::stage() {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  ::umask(0);
  const char* work = plan_.base.host.work_dir.c_str();
  Handle mount(new_memory(kStageBytes, kStageInodes, kNoExec));
  if (!mount || raw::move_mount(mount.get(), AT_FDCWD, work) != 0 || ::chdir(work) != 0) return false;
  for (const char* name : {"root", "layer", "store", "scratch", "lower", "mask", "mask/empty", "dev", "dev/pts", "dev/shm", "dev/mqueue"})
    if (::mkdir(name, 0755) != 0) return false;
  if (!fill_scaffold() || !fill_shape() || raw::mount_setattr(mount.get(), kSealed) != 0) return false;
  if (!put_memory("store", plan_.base.limits.disk_bytes, plan_.base.limits.disk_inodes, kBase)) return false;
  if (!put_memory("scratch", kScratchBytes, kScratchInodes, kBase)) return false;
  for (const char* name : {"store/workspace", "store/home", "scratch/run"})
    if (::mkdir(name, 0755) != 0) return false;
  for (const char* name : {"scratch/tmp", "scratch/var-tmp", "scratch/shm"})
    if (::mkdir(name, 01777) != 0) return false;
  return true;
}

// The upper layer of the root: its real directories and files hide whatever the layer below has at these names, so that no mount goes
// through a link.
bool View::fill_scaffold() {
  for (const char* name : {"proc", "sys", "dev", "tmp", "var", "var/tmp", "run", "etc", "workspace", "home", "home/user"})
    if (::mkdir((std::string("lower/") + name).c_str(), 0755) != 0) return false;
  for (const char* name : {"hosts", "resolv.conf", "hostname", "machine-id"})
    if (!write_file(std::string("lower/etc/") + name, "")) return false;
  return true;
}

bool View::fill_shape() {
  const Limits& limits = plan_.base.limits;
  for (const auto& file : launch::proc_files(limits))
    if (!write_file("shape/proc/" + file.path, file.content)) return false;
  for (const auto& file : launch::sys_files(limits))
    if (!write_file("shape/sys/" + file.path, file.content)) return false;
  for (const auto& file : launch::etc_files())
    if (!write_file("shape/etc/" + file.path, file.content)) return false;
  if (!write_file("shape/etc/hostname", plan_.base.hostname + "\n") || !write_file("shape/etc/machine-id", plan_.base.machine_id + "\n") ||
      !write_file("mask/nothing", "", 0000))
    return false;
  for (const char* name : kDevices)
    if (!write_file(std::string("dev/") + name, "")) return false;
  struct Link {
    const char* target;
    const char* name;
  };
  for (Link link : {Link{"/proc/self/fd", "dev/fd"}, Link{"/proc/self/fd/0", "dev/stdin"}, Link{"/proc/self/fd/1", "dev/stdout"},
                    Link{"/proc/self/fd/2", "dev/stderr"}, Link{"pts/ptmx", "dev/ptmx"}})
    if (::symlink(link.target, link.name) != 0) return false;
  return true;
}

// Shown at a name of ours: a state directory may have any character in its path, the options of an overlay may not.
bool View::image_layer() { return show(plan_.base.layer_paths.front().c_str(), "layer", kBase | MOUNT_ATTR_RDONLY); }

bool View::root() {
  Handle fs(raw::fsopen("overlay"));
  if (!fs) return false;
  bool set = raw::fsconfig_string(fs.get(), "source", "root") == 0 && raw::fsconfig_string(fs.get(), "lowerdir", "lower:layer") == 0 &&
             raw::fsconfig_create(fs.get()) == 0;
  Handle mount(set ? raw::fsmount(fs.get(), static_cast<unsigned>(kBase | MOUNT_ATTR_RDONLY)) : -1);
  return mount && raw::move_mount(mount.get(), AT_FDCWD, "root") == 0;
}

// With everything mounted below: the kernel does not let a user uncover what lies under a mount of the host.
bool View::host_directories() {
  for (const auto& directory : plan_.base.host.directories) {
    Handle tree(raw::open_whole_tree_clone(AT_FDCWD, directory.path.c_str()));
    std::string at = "root/" + directory.name;
    if (!tree || raw::mount_setattr_whole(tree.get(), kBase | MOUNT_ATTR_RDONLY) != 0 ||
        raw::move_mount(tree.get(), AT_FDCWD, at.c_str()) != 0)
      return false;
  }
  return true;
}

// The kernel gives a user a new one only where the host's own is not partly covered.
bool View::proc() {
  Handle fs(raw::fsopen("proc"));
  bool set = fs && raw::fsconfig_string(fs.get(), "source", "proc") == 0;
  if (set && processes_only()) set = raw::fsconfig_string(fs.get(), "subset", "pid") == 0;
  set = set && raw::fsconfig_create(fs.get()) == 0;
  Handle mount(set ? raw::fsmount(fs.get(), static_cast<unsigned>(kSealed)) : -1);
  return mount && raw::move_mount(mount.get(), AT_FDCWD, "root/proc") == 0;
}

bool View::proc_masks() {
  if (processes_only()) return true;
  // A bind of an object that is read-only where it comes from is read-only here.
  auto cover = [](const std::string& with, const std::string& name) {
    return ::mount(with.c_str(), ("root/proc/" + name).c_str(), nullptr, MS_BIND, nullptr) == 0;
  };
  for (const auto& name : plan_.base.host.proc_masks)
    if (!cover("mask/nothing", name)) return false;
  for (const auto& name : plan_.base.host.proc_dir_masks)
    if (!cover("mask/empty", name)) return false;
  for (const auto& file : launch::proc_files(plan_.base.limits))
    if (!cover("shape/proc/" + file.path, file.path)) return false;
  return true;
}

bool View::sys() { return show("shape/sys", "root/sys", kSealed); }

bool View::dev() {
  if (!show("dev", "root/dev", kSealed)) return false;
  for (const char* name : kDevices) {
    std::string host = std::string("/dev/") + name, at = std::string("root/dev/") + name;
    if (!show(host.c_str(), at.c_str(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY)) return false;
  }
  Handle fs(raw::fsopen("devpts"));
  bool set = fs && raw::fsconfig_string(fs.get(), "source", "devpts") == 0 && raw::fsconfig_string(fs.get(), "ptmxmode", "0666") == 0 &&
             raw::fsconfig_string(fs.get(), "mode", "0600") == 0 && raw::fsconfig_string(fs.get(), "max", "64") == 0 &&
             raw::fsconfig_create(fs.get()) == 0;
  Handle pts(set ? raw::fsmount(fs.get(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC) : -1);
  if (!pts || raw::move_mount(pts.get(), AT_FDCWD, "root/dev/pts") != 0) return false;
  Handle queues(raw::fsopen("mqueue"));
  Handle mqueue(queues && raw::fsconfig_create(queues.get()) == 0 ? raw::fsmount(queues.get(), static_cast<unsigned>(kNoExec)) : -1);
  return mqueue && raw::move_mount(mqueue.get(), AT_FDCWD, "root/dev/mqueue") == 0 && show("scratch/shm", "root/dev/shm", kNoExec);
}

bool View::etc() {
  for (const char* name : {"hosts", "resolv.conf", "hostname", "machine-id"}) {
    std::string from = std::string("shape/etc/") + name, at = std::string("root/etc/") + name;
    if (!show(from.c_str(), at.c_str(), kSealed)) return false;
  }
  return true;
}

bool View::show_workspace() {
  if (plan_.workspace.empty()) return show("store/workspace", "root/workspace", kBase);
  // By its path: a descriptor of the keeper's is of a mount of the keeper's, and only mounts of our own may be copied.
  Handle tree(raw::open_whole_tree_clone(AT_FDCWD, plan_.workspace.c_str()));
  struct stat meant{}, found{};
  if (!tree || ::fstat(plan_.workspace_fd, &meant) != 0 || ::fstat(tree.get(), &found) != 0) return false;
  if (meant.st_dev != found.st_dev || meant.st_ino != found.st_ino) return errno = ESTALE, false;
  return raw::mount_setattr_whole(tree.get(), kBase) == 0 && raw::move_mount(tree.get(), AT_FDCWD, "root/workspace") == 0;
}

bool View::scratch() {
  return show("scratch/tmp", "root/tmp", kBase) && show("scratch/var-tmp", "root/var/tmp", kBase) &&
         show("scratch/run", "root/run", kNoExec) && show("store/home", "root/home/user", kBase) && show_workspace();
}

// The old root comes to lie on the new one for a moment and is then let go: no path and no mount of the host is left in here.
bool View::switch_root() {
  if (::chdir("root") != 0 || raw::pivot_root(".", ".") != 0) return false;
  return ::umount2(".", MNT_DETACH) == 0 && ::chdir("/") == 0;
}

}  // namespace osb::confine
