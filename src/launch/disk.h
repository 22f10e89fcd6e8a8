// Disk-backed writable layers: an ext4 image without a name on a loop device that frees itself with its last user.
//
// The image never has a path (O_TMPFILE) and the device clears itself, so a crash at any moment leaves nothing.
// Only file systems that we made ourselves are ever mounted.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace osb::launch {

// Above this size the writable layer moves from memory to disk.
inline constexpr std::uint64_t kLargestMemoryStore = 256ull << 20;

// Path of an empty file system of this size, made on first use with mkfs.ext4. Sparse: a few hundred KiB on disk.
// A journal is for what is to survive the host's sudden end.
enum class Journal { no, yes };
Result<std::string> disk_template(const std::string& disks_dir, std::uint64_t bytes, std::uint64_t inodes, Journal journal = Journal::no);

// Copies only what holds data; the rest of the copy stays a hole.
bool copy_sparse(int from, int to, off_t size);
// A free loop device over `image`, which clears itself with its last user; a descriptor that keeps it until it is mounted, or -1 with
// errno. The device's path goes to `device`.
int attach_loop(int image, char* device, std::size_t device_size);

// Starts a helper process outside every sandbox's device rules: it copies the template to a nameless file, attaches it to
// a free loop device, mounts it and sends the detached mount over a socket. The sandbox's process takes it from there.
struct DiskHelper {
  Fd socket;  // enter::receive_mount() reads from it
  Fd pidfd;   // readable when the helper has ended and wants to be reaped
};
// `leave_device_rules` runs in the helper, before it touches a device.
Result<DiskHelper> start_disk_helper(const std::string& template_path, const std::string& disks_dir,
                                     const std::function<bool()>& leave_device_rules);

// The same for another way to a mount: `make` runs in the helper and gives the mount, or -1 with errno.
Result<DiskHelper> start_mount_helper(const std::function<int()>& make);

}  // namespace osb::launch
