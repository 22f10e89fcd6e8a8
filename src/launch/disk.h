// Disk-backed writable layers: an ext4 image without a name on a loop device that frees itself with its last user.
//
// The image never has a path (O_TMPFILE) and the device clears itself, so a crash at any moment leaves nothing.
// Only file systems that we made ourselves are ever mounted.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace osb::launch {

// Above this size the writable layer moves from memory to disk.
inline constexpr std::uint64_t kLargestMemoryStore = 256ull << 20;

// Path of an empty file system of this size, made on first use with mkfs.ext4. Sparse: a few hundred KiB on disk.
Result<std::string> disk_template(const std::string& disks_dir, std::uint64_t bytes, std::uint64_t inodes);

// Copies the template to a nameless file in disks_dir and attaches it to a free loop device, whose path it writes to
// `device`. Returns a descriptor that keeps the device until it is mounted, or -1 with errno. No heap: runs after clone.
int attach_disk(const char* template_path, const char* disks_dir, char* device, std::size_t device_size);

}  // namespace osb::launch
