#include "launch/disk.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/text.h"
#include "sys/descriptor_message.h"
#include "sys/raw.h"

extern char** environ;

namespace osb::launch {
namespace {

Result<> make_file_system(const std::string& path, std::uint64_t inodes, Journal journal) {
  std::string count = cat(inodes);
  const char* argv[] = {"mkfs.ext4",
                        "-q",
                        "-F",
                        "-b",  // as the loop device has it; small ones would get less
                        "4096",
                        "-O",
                        journal == Journal::yes ? "has_journal" : "^has_journal",
                        "-m",
                        "0",
                        "-E",
                        "lazy_itable_init=1,nodiscard",
                        "-N",
                        count.c_str(),
                        path.c_str(),
                        nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (int fd : {0, 1, 2}) ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  pid_t pid = 0;
  int error = ::posix_spawnp(&pid, "mkfs.ext4", &actions, nullptr, const_cast<char* const*>(argv), environ);
  if (error != 0) error = ::posix_spawn(&pid, "/sbin/mkfs.ext4", &actions, nullptr, const_cast<char* const*>(argv), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Error::from_errno("start mkfs.ext4", error).with_hint("install e2fsprogs, or ask for at most 256 MiB of disk");
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return Error(Errc::internal, "mkfs.ext4 failed");
  return Ok{};
}

int free_loop_device(int control, char* device, std::size_t device_size) {
  int number = ::ioctl(control, LOOP_CTL_GET_FREE);
  if (number < 0) return -1;
  std::snprintf(device, device_size, "/dev/loop%d", number);
  return ::open(device, O_RDWR | O_CLOEXEC);
}

}  // namespace

bool copy_sparse(int from, int to, off_t size) {
  if (::ftruncate(to, size) != 0) return false;
  for (off_t data = ::lseek(from, 0, SEEK_DATA); data >= 0 && data < size; data = ::lseek(from, data, SEEK_DATA)) {
    off_t end = ::lseek(from, data, SEEK_HOLE);
    if (end < 0) return false;
    off_t out = data;
    while (data < end) {
      auto n = ::copy_file_range(from, &data, to, &out, static_cast<std::size_t>(end - data), 0);
      if (n <= 0) return false;
    }
  }
  return true;
}

Result<std::string> disk_template(const std::string& disks_dir, std::uint64_t bytes, std::uint64_t inodes, Journal journal) {
  std::string path = cat(disks_dir, journal == Journal::yes ? "/volume-" : "/empty-", bytes, "-", inodes);
  if (::access(path.c_str(), R_OK) == 0) return path;
  std::string partial = path + ".partial";
  ::unlink(partial.c_str());
  Fd file(::open(partial.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return Error::from_errno("create disk template", errno);
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return Error::from_errno("size disk template", errno);
  auto made = make_file_system(partial, inodes, journal);
  if (made && ::rename(partial.c_str(), path.c_str()) != 0) made = Error::from_errno("keep disk template", errno);
  if (!made) {
    ::unlink(partial.c_str());
    return std::move(made).error();
  }
  return path;
}

int attach_loop(int image, char* device, std::size_t device_size) {
  Fd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control) return -1;
  loop_config config{};
  config.fd = static_cast<std::uint32_t>(image);
  // Direct: the image's pages are not cached a second time at the sandbox's expense.
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
  config.block_size = 4096;
  // Another sandbox may take the free device first; then the next one is tried.
  for (int attempt = 0; attempt < 64; ++attempt) {
    int loop = free_loop_device(control.get(), device, device_size);
    if (loop < 0) return -1;
    if (::ioctl(loop, LOOP_CONFIGURE, &config) == 0) return loop;
    int error = errno;
    ::close(loop);
    errno = error;
    if (error != EBUSY) return -1;
  }
  return -1;
}

namespace {

int attach_disk(const char* template_path, const char* disks_dir, char* device, std::size_t device_size) {
  Fd original(::open(template_path, O_RDONLY | O_CLOEXEC));
  Fd image(::open(disks_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  struct stat info{};
  if (!original || !image || ::fstat(original.get(), &info) != 0 || !copy_sparse(original.get(), image.get(), info.st_size)) return -1;
  return attach_loop(image.get(), device, device_size);
}

int mount_disk(const char* template_path, const char* disks_dir) {
  namespace raw = sys::raw;
  char device[32];
  Fd keep_open(attach_disk(template_path, disks_dir, device, sizeof device));
  if (!keep_open) return -1;
  Fd fs(raw::fsopen("ext4"));
  bool set = fs && raw::fsconfig_string(fs.get(), "source", device) == 0 && raw::fsconfig_create(fs.get()) == 0;
  return set ? raw::fsmount(fs.get(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) : -1;
}

}  // namespace

Result<DiskHelper> start_disk_helper(const std::string& template_path, const std::string& disks_dir,
                                     const std::function<bool()>& leave_device_rules) {
  return start_mount_helper([&] { return leave_device_rules() ? mount_disk(template_path.c_str(), disks_dir.c_str()) : -1; });
}

Result<DiskHelper> start_mount_helper(const std::function<int()>& make) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return Error::from_errno("socketpair", errno);
  DiskHelper helper{Fd(ends[0]), Fd()};
  Fd theirs(ends[1]);
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_PIDFD;
  args.exit_signal = SIGCHLD;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  int child = sys::raw::clone3(args);
  if (child < 0) return Error::from_errno("clone disk helper", errno);
  if (child == 0) {
    int mount = make();
    // One int: 0 with the mount attached, or the errno that stopped it.
    int error = mount < 0 ? errno : 0;
    sys::send_with_descriptor(theirs.get(), &error, sizeof error, mount);
    ::_exit(0);
  }
  helper.pidfd = Fd(pidfd);
  return helper;
}

}  // namespace osb::launch
