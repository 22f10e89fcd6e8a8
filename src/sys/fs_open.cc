#include "sys/fs_open.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/text.h"

namespace osb::sys::fs {
namespace {

Error failed(std::string_view call, std::string_view name, Errc kind = Errc::internal) {
  int saved = errno;
  constexpr std::size_t kShown = 160;
  return Error::from_errno(cat(call, ' ', json_string(name.substr(0, kShown))), saved, kind);
}

Result<> done(int rc, std::string_view call, std::string_view name) {
  if (rc < 0) return failed(call, name);
  return Ok{};
}

}  // namespace

Result<Fd> open_directory(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return failed("open", path);
  return fd;
}

Result<Fd> open_file_for_reading(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd) return failed("open", path);
  return fd;
}

Result<Fd> open_beneath(int dir, const std::string& path, int flags, mode_t mode) {
  struct open_how how = {};
  how.flags = static_cast<std::uint64_t>(static_cast<unsigned>(flags | O_CLOEXEC | O_NOFOLLOW));
  how.mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  long fd = -1;
  do {
    fd = ::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return failed("openat2", path);
  return Fd(static_cast<int>(fd));
}

Result<struct stat> stat_fd(int fd) {
  struct stat info = {};
  if (::fstat(fd, &info) < 0) return failed("fstat", "");
  return info;
}

Result<struct stat> stat_at(int dir, const std::string& name) {
  struct stat info = {};
  if (::fstatat(dir, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0) return failed("fstatat", name);
  return info;
}

Result<std::string> read_link_at(int dir, const std::string& name) {
  std::string target(4096, '\0');
  ssize_t n = ::readlinkat(dir, name.c_str(), target.data(), target.size());
  if (n < 0) return failed("readlinkat", name);
  target.resize(static_cast<std::size_t>(n));
  return target;
}

Result<> make_dir_at(int dir, const std::string& name, mode_t mode) { return done(::mkdirat(dir, name.c_str(), mode), "mkdirat", name); }

Result<> make_symlink_at(int dir, const std::string& name, const std::string& target) {
  return done(::symlinkat(target.c_str(), dir, name.c_str()), "symlinkat", name);
}

Result<> make_fifo_at(int dir, const std::string& name, mode_t mode) { return done(::mkfifoat(dir, name.c_str(), mode), "mkfifoat", name); }

Result<> make_whiteout_at(int dir, const std::string& name) {
  return done(::mknodat(dir, name.c_str(), S_IFCHR, makedev(0, 0)), "mknodat", name);
}

Result<> make_link_at(int from_dir, const std::string& from, int to_dir, const std::string& to) {
  return done(::linkat(from_dir, from.c_str(), to_dir, to.c_str(), 0), "linkat", to);
}

Result<> unlink_at(int dir, const std::string& name) { return done(::unlinkat(dir, name.c_str(), 0), "unlinkat", name); }

Result<> remove_dir_at(int dir, const std::string& name) { return done(::unlinkat(dir, name.c_str(), AT_REMOVEDIR), "unlinkat", name); }

Result<> rename_at(int from_dir, const std::string& from, int to_dir, const std::string& to) {
  return done(::renameat(from_dir, from.c_str(), to_dir, to.c_str()), "renameat", to);
}

Result<> rename_new_at(int from_dir, const std::string& from, int to_dir, const std::string& to) {
  if (::renameat2(from_dir, from.c_str(), to_dir, to.c_str(), RENAME_NOREPLACE) == 0) return Ok{};
  return failed("renameat2", to, errno == EEXIST ? Errc::conflict : Errc::internal);
}

Result<> set_owner(int fd, uid_t uid, gid_t gid) { return done(::fchown(fd, uid, gid), "fchown", ""); }

Result<> set_owner_at(int dir, const std::string& name, uid_t uid, gid_t gid) {
  return done(::fchownat(dir, name.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW), "fchownat", name);
}

Result<> set_mode(int fd, mode_t mode) { return done(::fchmod(fd, mode), "fchmod", ""); }

Result<> set_mode_at(int dir, const std::string& name, mode_t mode) {
  return done(::fchmodat(dir, name.c_str(), mode, 0), "fchmodat", name);
}

Result<> set_mtime(int fd, struct timespec mtime) {
  struct timespec times[2] = {mtime, mtime};
  return done(::futimens(fd, times), "futimens", "");
}

Result<> set_mtime_at(int dir, const std::string& name, struct timespec mtime) {
  struct timespec times[2] = {mtime, mtime};
  return done(::utimensat(dir, name.c_str(), times, AT_SYMLINK_NOFOLLOW), "utimensat", name);
}

Result<> set_xattr(int fd, const char* name, const std::string& value) {
  return done(::fsetxattr(fd, name, value.data(), value.size(), 0), "fsetxattr", name);
}

Result<Space> space_of(int fd) {
  struct statvfs info = {};
  if (::fstatvfs(fd, &info) < 0) return failed("fstatvfs", "");
  std::uint64_t block = info.f_frsize;
  return Space{.total_bytes = info.f_blocks * block,
               .free_bytes = info.f_bavail * block,
               .total_inodes = info.f_files,
               .free_inodes = info.f_favail};
}

}  // namespace osb::sys::fs
