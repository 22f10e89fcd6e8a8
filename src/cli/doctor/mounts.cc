#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/text.h"
#include "cli/doctor/probes.h"
#include "sys/kernel_file.h"
#include "sys/raw.h"

namespace osb::cli {
namespace {

namespace raw = sys::raw;
constexpr const char* kPart = "Files";

bool own_mounts() { return ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0; }

// A detached tmpfs: nothing of a probe is ever visible outside it.
Fd scratch() {
  Fd fs(raw::fsopen("tmpfs"));
  if (!fs || raw::fsconfig_create(fs.get()) != 0) return Fd();
  return Fd(raw::fsmount(fs.get(), 0));
}

int try_mount_api() {
  if (!own_mounts()) return errno;
  Fd mount = scratch();
  return mount && raw::mount_setattr(mount.get(), MOUNT_ATTR_RDONLY) == 0 ? 0 : errno;
}

int try_overlay() {
  if (!own_mounts()) return errno;
  Fd mount = scratch();
  if (!mount || raw::move_mount(mount.get(), AT_FDCWD, "/tmp") != 0 || ::chdir("/tmp") != 0) return errno;
  for (const char* name : {"lower", "upper", "work"})
    if (::mkdir(name, 0755) != 0) return errno;
  Fd fs(raw::fsopen("overlay"));
  if (!fs) return errno;
  bool made = raw::fsconfig_string(fs.get(), "lowerdir", "lower") == 0 && raw::fsconfig_string(fs.get(), "upperdir", "upper") == 0 &&
              raw::fsconfig_string(fs.get(), "workdir", "work") == 0 && raw::fsconfig_create(fs.get()) == 0;
  if (!made) return errno;
  Fd overlay(raw::fsmount(fs.get(), 0));
  return overlay ? 0 : errno;
}

// A user namespace with a map, held by a child that waits to be killed.
Fd mapped_user_namespace() {
  clone_args args{};
  args.flags = CLONE_NEWUSER;
  args.exit_signal = SIGCHLD;
  pid_t child = raw::clone3(args);
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  if (child < 0) return Fd();
  Fd space;
  auto proc = sys::open_dir(cat("/proc/", child));
  if (proc && sys::write_at(proc->get(), "uid_map", "0 1073741824 65536") && sys::write_at(proc->get(), "gid_map", "0 1073741824 65536"))
    space.reset(::openat(proc->get(), "ns/user", O_RDONLY | O_CLOEXEC));
  int failed = errno;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  errno = failed;
  return space;
}

int try_idmapped(const std::string& path) {
  if (!own_mounts()) return errno;
  Fd users = mapped_user_namespace();
  if (!users) return errno == 0 ? EPERM : errno;
  Fd tree(raw::open_tree_clone(AT_FDCWD, path.c_str()));
  if (!tree) return errno;
  return raw::mount_setattr(tree.get(), MOUNT_ATTR_RDONLY | MOUNT_ATTR_IDMAP, users.get()) == 0 ? 0 : errno;
}

Finding judge(std::string name, int failed, std::string means, std::string lack, std::string fix) {
  if (failed == 0) return {kPart, std::move(name), Verdict::ok, true, std::move(means), {}};
  return {kPart, std::move(name), Verdict::missing, true, cat(lack, ": ", std::strerror(failed)), std::move(fix)};
}

// The nearest directory that exists: where the state directory is or will be.
std::string existing(std::string path) {
  while (path.size() > 1 && ::access(path.c_str(), F_OK) != 0) path = path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
  return path;
}

}  // namespace

std::vector<Finding> probe_mounts(const std::string& state_dir) {
  auto state = existing(state_dir);
  return {
      judge("mount API", errno_in_child(try_mount_api), "mounts are made by descriptor, never by a path that could change",
            "fsopen and mount_setattr do not work", "upgrade to Linux 5.12 or later"),
      judge("overlay", errno_in_child(try_overlay), "sandboxes share files without sharing writes or locks", "overlayfs does not work",
            "modprobe overlay"),
      judge("id-mapped mounts", errno_in_child([&] { return try_idmapped(state); }),
            cat("files below ", state, " belong to a sandbox's own ids"), cat("the file system of ", state, " cannot be id-mapped"),
            "put storage.state_dir on ext4, xfs or btrfs (Linux 5.12 or later)"),
      judge("host image", errno_in_child([] { return try_idmapped("/usr"); }), "the programs of this host can be shown read-only",
            "the file system of /usr cannot be id-mapped", "import an image and use it instead of host"),
  };
}

}  // namespace osb::cli
