#include "launch/tree_copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/text.h"
#include "launch/id_range.h"

namespace osb::launch {
namespace {

constexpr int kOpenDir = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr std::size_t kMaxAttribute = 64 * 1024;
constexpr std::uint64_t kRoomEvery = 64ull << 20;  // bytes written between two looks at the disk
constexpr char kOpaque[] = "trusted.overlay.opaque";

struct CloseDir {
  void operator()(DIR* stream) const noexcept { ::closedir(stream); }
};

std::string shown(const char* name) { return json_string(std::string_view(name).substr(0, 60)); }

Error failed(const char* what, const char* name) { return Error::from_errno(cat(what, " ", shown(name)), errno); }

bool is_whiteout(const struct stat& info) { return S_ISCHR(info.st_mode) && info.st_rdev == 0; }

// user.* as they are, and overlayfs' mark of a directory that hides what lies below. Its other notes mean nothing elsewhere.
Result<> copy_attributes(int from, int to, const char* name) {
  std::string names(kMaxAttribute, '\0');
  auto size = ::flistxattr(from, names.data(), names.size());
  if (size < 0 && errno == ENOTSUP) return Ok{};
  if (size < 0) return failed("list attributes of", name);
  names.resize(static_cast<std::size_t>(size));
  std::string value(kMaxAttribute, '\0');
  for (auto attribute : split(names, '\0')) {
    bool opaque = attribute == kOpaque;
    if (!attribute.starts_with("user.") && !opaque) continue;
    std::string key(attribute);
    auto length = ::fgetxattr(from, key.c_str(), value.data(), value.size());
    if (length < 0) return failed("read an attribute of", name);
    if (opaque && (length != 1 || value[0] != 'y')) continue;
    if (::fsetxattr(to, key.c_str(), value.data(), static_cast<std::size_t>(length), 0) != 0) return failed("set an attribute of", name);
  }
  return Ok{};
}

}  // namespace

Result<std::uint32_t> TreeCopy::inner(std::uint32_t id) const {
  if (id < first_id_ || id - first_id_ >= kIdsPerRange) return Error(Errc::internal, "a file has an owner outside the sandbox", EOVERFLOW);
  return id - first_id_;
}

Result<> TreeCopy::charge_entry() {
  if (++entries_ > limits_.entries) return Error(Errc::too_large, cat("more than ", limits_.entries, " files have changed"), E2BIG);
  return entries_ % 4096 == 1 ? check_room() : Result<>(Ok{});
}

Result<> TreeCopy::charge_bytes(std::uint64_t bytes) {
  bytes_ += bytes;
  if (bytes_ > limits_.bytes) return Error(Errc::too_large, cat("more than ", limits_.bytes, " bytes have changed"), EFBIG);
  if (bytes_ - room_checked_at_ < kRoomEvery) return Ok{};
  room_checked_at_ = bytes_;
  return check_room();
}

// The host keeps a twentieth of its disk, 64 MiB at least and 10 GiB at most.
Result<> TreeCopy::check_room() {
  struct statvfs space{};
  if (::fstatvfs(layer_, &space) != 0) return Error::from_errno("look at the disk", errno);
  auto total = static_cast<std::uint64_t>(space.f_blocks) * space.f_frsize;
  auto free = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  if (free < std::clamp<std::uint64_t>(total / 20, 64ull << 20, 10ull << 30) || (space.f_files != 0 && space.f_favail < space.f_files / 20))
    return Error(Errc::exhausted, "the disk of the image store is almost full", ENOSPC);
  return Ok{};
}

Result<> TreeCopy::add(int from, const std::string& path) {
  Fd own(::openat(from, ".", kOpenDir));
  if (!own) return Error::from_errno("open a writable place", errno);
  std::unique_ptr<DIR, CloseDir> look(::fdopendir(own.release()));
  if (!look) return Error::from_errno("read a writable place", errno);
  bool empty = true;
  while (const auto* item = ::readdir(look.get()))
    empty = empty && (std::string_view(item->d_name) == "." || std::string_view(item->d_name) == "..");
  if (empty) return Ok{};
  TRY(auto to, directory_in_layer(path));
  return children(from, to.get(), 0);
}

// Only ever real directories: what the sandbox wrote at these names lies under a mount and never came into the layer.
Result<Fd> TreeCopy::directory_in_layer(const std::string& path) {
  Fd at(::openat(layer_, ".", kOpenDir));
  if (!at) return Error::from_errno("open layer", errno);
  for (auto part : split(path, '/')) {
    if (part.empty()) continue;
    std::string name(part);
    if (::mkdirat(at.get(), name.c_str(), 0755) == 0) {
      CHECK_OK(charge_entry());
      if (::fchmodat(at.get(), name.c_str(), 0755, 0) != 0) return failed("chmod", name.c_str());
    } else if (errno != EEXIST) {
      return failed("make", name.c_str());
    }
    at = Fd(::openat(at.get(), name.c_str(), kOpenDir));
    if (!at) return failed("open", name.c_str());
  }
  return at;
}

Result<> TreeCopy::children(int from, int to, unsigned depth) {
  if (depth >= limits_.depth) return Error(Errc::too_large, cat("directories are nested deeper than ", limits_.depth), ELOOP);
  Fd own(::openat(from, ".", kOpenDir));  // a stream of its own: the caller's descriptor keeps its position
  if (!own) return Error::from_errno("open directory", errno);
  std::unique_ptr<DIR, CloseDir> stream(::fdopendir(own.get()));
  if (!stream) return Error::from_errno("read directory", errno);
  (void)own.release();
  for (;;) {
    errno = 0;
    const auto* item = ::readdir(stream.get());
    if (item == nullptr && errno != 0) return Error::from_errno("read directory", errno);
    if (item == nullptr) return Ok{};
    std::string_view name = item->d_name;
    if (name == "." || name == "..") continue;
    CHECK_OK(entry(from, to, item->d_name, depth));
  }
}

Result<> TreeCopy::entry(int from, int to, const char* name, unsigned depth) {
  struct stat info{};
  if (::fstatat(from, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return failed("look at", name);
  if (S_ISSOCK(info.st_mode)) {
    ++passed_over_;
    return Ok{};
  }
  CHECK_OK(charge_entry());
  if (S_ISDIR(info.st_mode)) return directory(from, to, name, info, depth);
  if (S_ISREG(info.st_mode)) return file(from, to, name, info);
  if (S_ISLNK(info.st_mode)) return symlink(from, to, name, info);
  if (S_ISFIFO(info.st_mode)) return fifo(to, name, info);
  if (!is_whiteout(info)) return Error(Errc::invalid_argument, cat(shown(name), " is a device"), EPERM);
  return ::mknodat(to, name, S_IFCHR, 0) == 0 ? Result<>(Ok{}) : failed("whiteout", name);
}

Result<> TreeCopy::directory(int from, int to, const char* name, const struct stat& info, unsigned depth) {
  Fd source(::openat(from, name, kOpenDir | O_NOATIME));
  if (!source) return failed("open", name);
  if (::mkdirat(to, name, 0700) != 0) return failed("make", name);
  Fd made(::openat(to, name, kOpenDir));
  if (!made) return failed("open", name);
  CHECK_OK(copy_attributes(source.get(), made.get(), name));
  CHECK_OK(children(source.get(), made.get(), depth + 1));
  return dress(made.get(), info);  // last: what is made inside changes its time
}

Result<> TreeCopy::file(int from, int to, const char* name, const struct stat& info) {
  std::string link = cat(info.st_dev, "-", info.st_ino);
  if (info.st_nlink > 1) {
    if (::linkat(links_, link.c_str(), to, name, 0) == 0) return Ok{};
    if (errno != ENOENT) return failed("link", name);
  }
  Fd source(::openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME | O_CLOEXEC));
  struct stat again{};
  if (!source || ::fstat(source.get(), &again) != 0) return failed("open", name);
  if (!S_ISREG(again.st_mode) || again.st_ino != info.st_ino)
    return Error(Errc::conflict, cat(shown(name), " changed while it was read"), EAGAIN);
  Fd made(::openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!made) return failed("make", name);
  if (auto copied = content(source.get(), made.get(), again.st_size); !copied) return std::move(copied).error().in(shown(name));
  CHECK_OK(copy_attributes(source.get(), made.get(), name));
  CHECK_OK(dress(made.get(), info));
  if (info.st_nlink > 1 && ::linkat(to, name, links_, link.c_str(), 0) != 0) return failed("link", name);
  return Ok{};
}

Result<> TreeCopy::symlink(int from, int to, const char* name, const struct stat& info) {
  char target[4096];
  auto n = ::readlinkat(from, name, target, sizeof target - 1);
  if (n < 0) return failed("read link", name);
  target[n] = 0;
  if (::symlinkat(target, to, name) != 0) return failed("make link", name);
  return dress_at(to, name, info, false);
}

Result<> TreeCopy::fifo(int to, const char* name, const struct stat& info) {
  if (::mkfifoat(to, name, 0600) != 0) return failed("make fifo", name);
  return dress_at(to, name, info, true);
}

// Only what holds data; the rest of the copy stays a hole.
Result<> TreeCopy::content(int from, int to, std::int64_t size) {
  if (::ftruncate(to, size) != 0) return Error::from_errno("size", errno);
  for (off_t at = ::lseek(from, 0, SEEK_DATA); at >= 0 && at < size; at = ::lseek(from, at, SEEK_DATA)) {
    off_t end = std::min<off_t>(::lseek(from, at, SEEK_HOLE), size);
    if (end <= at || ::lseek(to, at, SEEK_SET) != at) return Error(Errc::internal, "cannot find its data", EIO);
    while (at < end) {
      auto part = static_cast<std::size_t>(std::min<off_t>(end - at, 16 << 20));
      CHECK_OK(charge_bytes(part));
      auto n = ::sendfile(to, from, &at, part);
      if (n <= 0) return Error::from_errno("copy", n == 0 ? EIO : errno);
      bytes_ -= part - static_cast<std::size_t>(n);
    }
  }
  return Ok{};
}

Result<> TreeCopy::dress(int fd, const struct stat& info) {
  TRY(auto uid, inner(info.st_uid));
  TRY(auto gid, inner(info.st_gid));
  struct timespec times[2] = {{0, UTIME_OMIT}, info.st_mtim};
  // After the owner: a change of owner clears the setuid bits.
  if (::fchown(fd, uid, gid) != 0 || ::fchmod(fd, info.st_mode & 07777) != 0 || ::futimens(fd, times) != 0)
    return Error::from_errno("set owner and mode", errno);
  return Ok{};
}

Result<> TreeCopy::dress_at(int dir, const char* name, const struct stat& info, bool set_mode) {
  TRY(auto uid, inner(info.st_uid));
  TRY(auto gid, inner(info.st_gid));
  struct timespec times[2] = {{0, UTIME_OMIT}, info.st_mtim};
  bool done = ::fchownat(dir, name, uid, gid, AT_SYMLINK_NOFOLLOW) == 0 &&
              (!set_mode || ::fchmodat(dir, name, info.st_mode & 07777, 0) == 0) && ::utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) == 0;
  return done ? Result<>(Ok{}) : failed("set the owner of", name);
}

}  // namespace osb::launch
