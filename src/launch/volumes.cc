#include "launch/volumes.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/text.h"
#include "enter/plan.h"
#include "sys/raw.h"

namespace osb::launch {
namespace {

namespace raw = sys::raw;

// Built beside and renamed: an image that has its name is whole.
int open_or_make(int directory, const std::string& name, const std::string& template_path) {
  int existing = ::openat(directory, name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (existing >= 0 || errno != ENOENT) return existing;
  std::string partial = name + ".partial";
  ::unlinkat(directory, partial.c_str(), 0);
  Fd original(::open(template_path.c_str(), O_RDONLY | O_CLOEXEC));
  Fd image(::openat(directory, partial.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat info{};
  bool made = original && image && ::fstat(original.get(), &info) == 0 && copy_sparse(original.get(), image.get(), info.st_size) &&
              ::fsync(image.get()) == 0 && ::renameat(directory, partial.c_str(), directory, name.c_str()) == 0;
  if (made) return image.release();
  int error = errno;
  ::unlinkat(directory, partial.c_str(), 0);
  errno = error;
  return -1;
}

// The loop device that has this file already, held open so that it stays; -1 when there is none.
int device_with(const struct stat& file, char* device, std::size_t device_size) {
  DIR* devices = ::opendir("/dev");
  if (devices == nullptr) return -1;
  int found = -1;
  while (const auto* item = ::readdir(devices)) {
    unsigned number = 0;
    if (std::sscanf(item->d_name, "loop%u", &number) != 1) continue;
    std::snprintf(device, device_size, "/dev/loop%u", number);
    Fd loop(::open(device, O_RDWR | O_CLOEXEC));
    loop_info64 info{};
    if (!loop || ::ioctl(loop.get(), LOOP_GET_STATUS64, &info) != 0) continue;
    if (info.lo_inode != file.st_ino || info.lo_device != file.st_dev) continue;
    found = loop.release();
    break;
  }
  ::closedir(devices);
  return found;
}

int mount_volume(const std::string& directory, const std::string& name, const std::string& template_path) {
  Fd dir(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // One at a time: two that both find no device would give one image two superblocks.
  if (!dir || ::flock(dir.get(), LOCK_EX) != 0) return -1;
  Fd image(open_or_make(dir.get(), name, template_path));
  struct stat info{};
  if (!image || ::fstat(image.get(), &info) != 0) return -1;
  char device[32];
  Fd loop(device_with(info, device, sizeof device));
  if (!loop) loop = Fd(attach_loop(image.get(), device, sizeof device));
  if (!loop) return -1;
  Fd fs(raw::fsopen("ext4"));
  bool set = fs && raw::fsconfig_string(fs.get(), "source", device) == 0 && raw::fsconfig_create(fs.get()) == 0;
  Fd mount(set ? raw::fsmount(fs.get(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) : -1);
  struct stat top{};
  if (!mount || ::fstat(mount.get(), &top) != 0) return -1;
  if (top.st_uid == 0) {  // new: it belongs to the user that commands run as
    ::unlinkat(mount.get(), "lost+found", AT_REMOVEDIR);
    if (::fchownat(mount.get(), "", enter::kPayloadId, enter::kPayloadId, AT_EMPTY_PATH) != 0) return -1;
  }
  return mount.release();
}

}  // namespace

Result<DiskHelper> start_volume_helper(const std::string& directory, const std::string& name, const std::string& template_path,
                                       const std::function<bool()>& leave_device_rules) {
  return start_mount_helper([&] { return leave_device_rules() ? mount_volume(directory, name, template_path) : -1; });
}

}  // namespace osb::launch
