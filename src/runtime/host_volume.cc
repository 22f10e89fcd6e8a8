#include "runtime/host_volume.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "sys/raw.h"

namespace osb::runtime {
namespace {

namespace raw = sys::raw;

Error refuse(Errc kind, std::string_view code, std::string what) {
  return Error(kind, std::move(what)).with_code(cat("VOLUME::", code)).at("volumes");
}

Error not_allowed(const std::string& path) {
  return refuse(Errc::invalid_argument, "HOST_PATH_NOT_ALLOWED", cat(json_string(path), " is not inside a directory this server shares"))
      .with_hint("the operator lists them in storage.allowed_host_paths");
}

// Where an open file really is, whatever links led to it.
std::string place_of(int fd) {
  char text[PATH_MAX];
  auto n = ::readlink(cat("/proc/self/fd/", fd).c_str(), text, sizeof text);
  return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : std::string();
}

bool is_shared(int fd, const std::vector<std::string>& allowed) {
  std::string place = place_of(fd);
  return !place.empty() && std::ranges::any_of(allowed, [&](const std::string& path) {
    Fd dir(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    std::string top = dir ? place_of(dir.get()) : std::string();
    return !top.empty() && (place == top || place.starts_with(top + "/"));
  });
}

Result<Fd> make_inside(int dir, const std::string& name) {
  struct stat above{};
  if (::fstat(dir, &above) != 0) return Error::from_errno("stat", errno);
  if (::mkdirat(dir, name.c_str(), 0755) == 0) {
    if (::fchownat(dir, name.c_str(), above.st_uid, above.st_gid, AT_SYMLINK_NOFOLLOW) != 0) return Error::from_errno("chown", errno);
  } else if (errno != EEXIST) {
    return Error::from_errno("mkdir", errno);
  }
  Fd made(::openat(dir, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made) return Error::from_errno("open", errno);
  return made;
}

// From the deepest directory that is there, which has to be a shared one itself.
Result<Fd> make_missing(const HostVolume& volume) {
  std::vector<std::string> missing;
  std::string path = volume.path;
  Fd dir;
  while (!dir) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    auto slash = path.rfind('/');
    if (slash == std::string::npos || path.size() == 1) return not_allowed(volume.path);
    missing.push_back(path.substr(slash + 1));
    path = slash == 0 ? "/" : path.substr(0, slash);
    dir = Fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!dir && errno != ENOENT)
      return refuse(Errc::invalid_argument, "HOST_PATH_NOT_FOUND", cat(json_string(volume.path), " cannot be reached"));
  }
  if (!is_shared(dir.get(), volume.allowed)) return not_allowed(volume.path);
  for (auto name = missing.rbegin(); name != missing.rend(); ++name) {
    if (*name == "." || name->empty()) continue;
    auto made = make_inside(dir.get(), *name);
    if (!made)
      return refuse(Errc::internal, "HOST_PATH_CREATE_FAILED", cat("cannot make ", json_string(volume.path), ": ", made.error().what()));
    dir = *std::move(made);
  }
  return dir;
}

Result<Fd> open_top(const HostVolume& volume) {
  Fd found(::open(volume.path.c_str(), O_PATH | O_CLOEXEC));
  if (!found && errno == ENOENT) return make_missing(volume);
  if (!found) return refuse(Errc::invalid_argument, "HOST_PATH_NOT_FOUND", cat(json_string(volume.path), " cannot be reached"));
  if (!is_shared(found.get(), volume.allowed)) return not_allowed(volume.path);
  return found;
}

// R-INROOT: links inside the volume are followed as if its top were "/". What is missing is made where the walk stands.
Result<Fd> open_sub_path(Fd top, const std::string& sub_path) {
  constexpr std::uint64_t kInside = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  auto wrong = [&](int error) {
    return refuse(Errc::invalid_argument, "INVALID_SUB_PATH",
                  cat(json_string(sub_path), " is no directory of the volume: ", std::strerror(error)));
  };
  Fd at(raw::openat2(top.get(), ".", O_PATH | O_DIRECTORY, kInside));
  if (!at) return wrong(errno);
  std::string walked;
  for (auto part : split(sub_path, '/')) {
    walked += cat(walked.empty() ? "" : "/", part);
    Fd next(raw::openat2(top.get(), walked.c_str(), O_PATH | O_DIRECTORY, kInside));
    if (!next && errno == ENOENT) {
      auto made = make_inside(at.get(), std::string(part));
      if (!made) return wrong(made.error().sys());
      next = *std::move(made);
    }
    if (!next) return wrong(errno);
    at = std::move(next);
  }
  return at;
}

}  // namespace

Result<Fd> open_host_volume(const HostVolume& volume) {
  if (volume.allowed.empty()) return not_allowed(volume.path);
  TRY(auto top, open_top(volume));
  struct stat info{};
  if (::fstat(top.get(), &info) != 0 || !(S_ISDIR(info.st_mode) || S_ISREG(info.st_mode)))
    return refuse(Errc::invalid_argument, "INVALID_HOST_PATH", cat(json_string(volume.path), " is neither a directory nor a regular file"));
  if (!volume.sub_path.empty()) {
    TRY(top, open_sub_path(std::move(top), volume.sub_path));
  }
  Fd tree(raw::open_tree_clone(top.get(), ""));
  if (!tree) return Error::from_errno("detach a mount of the volume", errno);
  return tree;
}

}  // namespace osb::runtime
