// The volumes of a sandbox: taken before its root is built, put in their places after everything else is.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "enter/handed_mount.h"
#include "enter/mounts.h"
#include "sys/raw.h"

namespace osb::enter {
namespace {

namespace raw = sys::raw;

constexpr std::uint64_t kVolume = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

bool is_at_or_below(const std::string& path, const char* top) {
  std::size_t length = std::strlen(top);
  return path.compare(0, length, top) == 0 && (path.size() == length || path[length] == '/');
}

bool is_file(int fd) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

// The next part of a path, from `at` on; empty at the end.
std::string next_part(const std::string& path, std::size_t& at) {
  while (at < path.size() && path[at] == '/') ++at;
  std::size_t end = path.find('/', at);
  if (end == std::string::npos) end = path.size();
  std::string part = path.substr(at, end - at);
  at = end;
  return part;
}

}  // namespace

// A directory below the top of a named volume. Others who share it may have put links there: they are followed, but never out of
// the volume.
int Mounts::inside_volume(int top, const std::string& sub_path) {
  int at = raw::openat2(top, ".", O_PATH | O_DIRECTORY, RESOLVE_IN_ROOT);
  std::string walked;
  for (std::size_t position = 0; at >= 0;) {
    std::string part = next_part(sub_path, position);
    if (part.empty()) return at;
    walked += walked.empty() ? part : "/" + part;
    constexpr std::uint64_t kInside = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    int next = raw::openat2(top, walked.c_str(), O_PATH | O_DIRECTORY, kInside);
    if (next < 0 && errno == ENOENT && ::mkdirat(at, part.c_str(), 0755) == 0 &&
        ::fchownat(at, part.c_str(), owner(), owner(), AT_SYMLINK_NOFOLLOW) == 0)
      next = raw::openat2(top, walked.c_str(), O_PATH | O_DIRECTORY, kInside);
    int error = errno;
    ::close(at);
    errno = error;
    at = next;
  }
  return -1;
}

bool Mounts::take_named(std::size_t i) {
  const auto& volume = plan_.volumes[i];
  int mount = receive_mount(volume.socket);
  char place[16];
  std::snprintf(place, sizeof place, "v%zu", i);
  if (mount < 0 || raw::move_mount(mount, AT_FDCWD, place) != 0) return false;
  int inside = inside_volume(mount, volume.sub_path);
  if (inside < 0) return false;
  trees_[i] = raw::open_tree_clone(inside, "");
  ::close(inside);
  return trees_[i] >= 0;
}

bool Mounts::volume_sources() {
  for (std::size_t i = 0; i < plan_.volumes.size(); ++i) {
    const auto& volume = plan_.volumes[i];
    trees_[i] = volume.tree;
    if (volume.tree < 0 && !take_named(i)) return false;
    std::uint64_t attributes = kVolume | MOUNT_ATTR_IDMAP | (volume.read_only ? MOUNT_ATTR_RDONLY : 0);
    if (raw::mount_setattr(trees_[i], attributes, volume.user_namespace) != 0) return false;
    if (!writable() && needs_point(volume.mount_path) && !make_point(volume.mount_path, is_file(trees_[i]))) return false;
  }
  return true;
}

// Places that are writable anyway get their directories when the volume is put there; what the host shows cannot have any.
bool Mounts::needs_point(const std::string& path) const {
  for (const char* place : {"/workspace", "/home/user", "/tmp", "/var/tmp", "/run"})
    if (is_at_or_below(path, place)) return false;
  for (std::size_t i = 0; plan_.host_view && i < plan_.host.directories.size(); ++i)
    if (is_at_or_below(path, plan_.host.directories[i].path.c_str())) return false;
  return true;
}

// A read-only root has no place to make a directory in, so the mount points lie in a layer of their own on top of it. A link of
// the image on the way is refused: a real directory would hide it.
bool Mounts::make_point(const std::string& path, bool file) {
  for (std::size_t layer = 0; layer <= plan_.layer_paths.size(); ++layer) {
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
      char name[16];
      std::snprintf(name, sizeof name, "l%zu", layer);
      struct stat info{};
      std::string place = name + path.substr(0, end);
      if (::fstatat(AT_FDCWD, place.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) break;
      if (S_ISLNK(info.st_mode)) return errno = ELOOP, false;
      if (end == std::string::npos) break;
    }
  }
  if (!points_ && !own(store_, "points", 0, 0755)) return false;
  points_ = true;
  int at = ::openat(store_, "points", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (std::size_t position = 0; at >= 0;) {
    std::string part = next_part(path, position);
    if (part.empty()) break;
    bool last = path.find_first_not_of('/', position) == std::string::npos;
    if (last && file) {
      int made = ::openat(at, part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
      if (made < 0) return false;
      ::close(made);
      break;
    }
    if (!own(at, part.c_str(), 0, 0755) && errno != EEXIST) return false;
    int next = ::openat(at, part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    ::close(at);
    at = next;
  }
  if (at >= 0) ::close(at);
  return at >= 0;
}

// Where a volume goes, made when it is missing; no symbolic link on the way.
int Mounts::target_for(const std::string& path, bool file) {
  constexpr std::uint64_t kNoLinks = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  auto id = plan_.first_id + owner();
  int at = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (std::size_t position = 0; at >= 0;) {
    std::string part = next_part(path, position);
    if (part.empty()) return at;
    int next = raw::openat2(at, part.c_str(), O_PATH, kNoLinks);
    if (next < 0 && errno == ENOENT) {
      bool as_file = file && path.find_first_not_of('/', position) == std::string::npos;
      int made = as_file ? ::openat(at, part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) : ::mkdirat(at, part.c_str(), 0755);
      if (made >= 0 && as_file) ::close(made);
      if (made >= 0 && ::fchownat(at, part.c_str(), id, id, AT_SYMLINK_NOFOLLOW) == 0)
        next = raw::openat2(at, part.c_str(), O_PATH, kNoLinks);
    }
    int error = errno;
    ::close(at);
    errno = error;
    at = next;
  }
  return -1;
}

bool Mounts::volume_mounts() {
  for (std::size_t i = 0; i < plan_.volumes.size(); ++i) {
    int target = target_for(plan_.volumes[i].mount_path, is_file(trees_[i]));
    if (target < 0 || raw::move_mount(trees_[i], target, "") != 0) return false;
    ::close(target);
    ::close(trees_[i]);
  }
  return true;
}

}  // namespace osb::enter
