// Files and directories by descriptor: one thin function per kernel call, for trees whose names or content are hostile.
//
// A `dir` is a descriptor of a directory we trust; a `path` beneath it can never leave it: openat2(2) refuses "..",
// absolute paths, symbolic links in any component, magic links and mount points. A `name` is a single component.
// Every descriptor is close-on-exec. Errors carry errno in sys() and the name escaped to plain ASCII.
#pragma once
#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace osb::sys::fs {

// A path of the operator's, not of an archive: symbolic links are followed.
Result<Fd> open_directory(const std::string& path);
Result<Fd> open_file_for_reading(const std::string& path);  // never blocks on a fifo

// `path` "." is the directory itself.
Result<Fd> open_beneath(int dir, const std::string& path, int flags, mode_t mode = 0);
Result<struct stat> stat_fd(int fd);
// Never follows a symbolic link. ENOENT in sys() when there is nothing.
Result<struct stat> stat_at(int dir, const std::string& name);
Result<std::string> read_link_at(int dir, const std::string& name);

Result<> make_dir_at(int dir, const std::string& name, mode_t mode);
Result<> make_symlink_at(int dir, const std::string& name, const std::string& target);
Result<> make_fifo_at(int dir, const std::string& name, mode_t mode);
Result<> make_whiteout_at(int dir, const std::string& name);  // character device 0:0: "nothing here" to overlayfs
Result<> make_link_at(int from_dir, const std::string& from, int to_dir, const std::string& to);  // links a link itself
Result<> unlink_at(int dir, const std::string& name);
Result<> remove_dir_at(int dir, const std::string& name);
Result<> rename_at(int from_dir, const std::string& from, int to_dir, const std::string& to);
// Errc::conflict with EEXIST when `to` is there already.
Result<> rename_new_at(int from_dir, const std::string& from, int to_dir, const std::string& to);

Result<> set_owner(int fd, uid_t uid, gid_t gid);
Result<> set_owner_at(int dir, const std::string& name, uid_t uid, gid_t gid);  // of the link, where it is one
Result<> set_mode(int fd, mode_t mode);
Result<> set_mode_at(int dir, const std::string& name, mode_t mode);  // not on a symbolic link
Result<> set_mtime(int fd, struct timespec mtime);
Result<> set_mtime_at(int dir, const std::string& name, struct timespec mtime);  // of the link, where it is one
Result<> set_xattr(int fd, const char* name, const std::string& value);

struct Space {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t total_inodes = 0;  // 0: the file system has no fixed number
  std::uint64_t free_inodes = 0;
};
Result<Space> space_of(int fd);

}  // namespace osb::sys::fs
