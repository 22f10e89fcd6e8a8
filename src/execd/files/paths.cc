#include "execd/files/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/text.h"
#include "execd/replies.h"

namespace osb::execd::files {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel

Error with_path(Errc kind, std::string_view code, std::string_view doing, std::string_view path, int sys) {
  return Error::from_errno(cat(doing, " ", json_string(path.substr(0, 200))), sys, kind).with_code(code);
}

std::string link_target(int dir, const char* name) {
  char target[PATH_MAX];
  auto n = ::readlinkat(dir, name, target, sizeof target);
  return n > 0 ? std::string(target, static_cast<std::size_t>(n)) : std::string();
}

std::string own_fd_path(int fd) { return cat("/proc/self/fd/", fd); }

bool is_kernel_made(int fd) {
  struct statfs fs{};
  if (::fstatfs(fd, &fs) != 0) return false;
  return fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC;
}

// "/proc/17/...": memory and environment of a process are not files to hand out.
bool tells_about_a_process(int fd) {
  std::string path = link_target(AT_FDCWD, own_fd_path(fd).c_str());
  return !path.starts_with("/proc/") || (path.size() > 6 && path[6] >= '0' && path[6] <= '9');
}

int status_of(Errc kind) {
  if (kind == Errc::invalid_argument || kind == Errc::malformed) return 400;
  if (kind == Errc::permission_denied) return 403;
  if (kind == Errc::not_found) return 404;
  if (kind == Errc::too_large) return 413;
  return kind == Errc::exhausted ? 507 : 500;
}

}  // namespace

std::string clean(std::string_view absolute) {
  std::string out;
  while (!absolute.empty()) {
    absolute.remove_prefix(absolute.front() == '/' ? 1 : 0);
    auto end = std::min(absolute.find('/'), absolute.size());
    std::string_view part = absolute.substr(0, end);
    absolute.remove_prefix(end);
    if (part == "..") out.resize(out.empty() ? 0 : out.rfind('/'));
    if (!part.empty() && part != "." && part != "..") out += cat("/", part);
  }
  return out.empty() ? "/" : out;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string parent_of(std::string_view path) {
  auto slash = path.rfind('/');
  return slash == 0 || slash == path.npos ? "/" : std::string(path.substr(0, slash));
}

std::string join(std::string_view dir, std::string_view name) { return cat(dir, dir.ends_with('/') ? "" : "/", name); }

Result<std::string> expand(const Setup& setup, std::string_view path) {
  if (path.empty()) return Error(Errc::invalid_argument, "the path is empty").with_code("INVALID_FILE");
  auto full = expand_path(path, setup.env, setup.home, setup.cwd);
  if (!full) return std::move(full).error().with_code("INVALID_FILE");
  return clean(*full);
}

Error failed(std::string_view doing, std::string_view path, int sys) {
  switch (sys) {
    case ENOENT: return with_path(Errc::not_found, "FILE_NOT_FOUND", doing, path, sys);
    case ENOTDIR:
    case ELOOP:
    case EINVAL:
    case ENAMETOOLONG:
    case EISDIR: return with_path(Errc::invalid_argument, "INVALID_FILE", doing, path, sys);
    case EACCES:
    case EPERM: return with_path(Errc::permission_denied, "RUNTIME_ERROR", doing, path, sys);
    case EFBIG: return with_path(Errc::too_large, "RUNTIME_ERROR", doing, path, sys);
    case ENOSPC:
    case EDQUOT:
      return with_path(Errc::exhausted, "RUNTIME_ERROR", doing, path, sys).with_hint("remove files, or give the sandbox more disk");
    default: return with_path(Errc::internal, "RUNTIME_ERROR", doing, path, sys);
  }
}

Error refused(std::string_view path, std::string_view why) {
  return Error(Errc::invalid_argument, cat(json_string(path.substr(0, 200)), " ", why)).with_code("INVALID_FILE");
}

Fd open_at(int dir, const std::string& path, int flags, std::uint64_t resolve, mode_t mode) {
  struct open_how how{};
  how.flags = static_cast<std::uint64_t>(static_cast<unsigned>(flags | O_CLOEXEC));
  how.mode = mode;
  how.resolve = resolve | RESOLVE_NO_MAGICLINKS;
  for (;;) {
    auto fd = ::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how);
    if (fd >= 0) return Fd(static_cast<int>(fd));
    // Some runtimes (gVisor) know only the older call; there the links of /proc lead nowhere we could be harmed.
    if (errno == ENOSYS) return Fd(::openat(dir, path.c_str(), flags | O_CLOEXEC | (resolve != 0 ? O_NOFOLLOW : 0), mode));
    if (errno != EINTR && errno != EAGAIN) return Fd();
  }
}

Result<Fd> open_object(const std::string& path) {
  Fd fd = open_at(AT_FDCWD, path, O_PATH);
  if (!fd) return failed("open", path, errno);
  return fd;
}

Result<Fd> reopen(const Fd& object, int flags, std::string_view path) {
  Fd fd(::open(own_fd_path(object.get()).c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return failed("open", path, errno);
  return fd;
}

Result<Content> open_content(const std::string& path) {
  Content content;
  TRY(auto object, open_object(path));
  if (::fstat(object.get(), &content.info) != 0) return failed("stat", path, errno);
  if (!S_ISREG(content.info.st_mode)) return refused(path, "is not a regular file");
  content.kernel_made = is_kernel_made(object.get());
  if (content.kernel_made && tells_about_a_process(object.get())) return refused(path, "is not a file with content of its own");
  TRY(content.fd, reopen(object, O_RDONLY, path));
  return content;
}

Result<Place> locate(const std::string& path) {
  std::string at = path;
  for (int links = 0; links < kMaxLinks; ++links) {
    Place place{std::make_shared<Fd>(open_at(AT_FDCWD, parent_of(at), O_PATH | O_DIRECTORY)), std::string(base_name(at)), path};
    if (!*place.dir) return failed("open", path, errno);
    if (place.name.empty()) return refused(path, "is the root directory");
    place.exists = ::fstatat(place.dir->get(), place.name.c_str(), &place.info, AT_SYMLINK_NOFOLLOW) == 0;
    if (!place.exists && errno != ENOENT) return failed("stat", path, errno);
    if (!place.exists || !S_ISLNK(place.info.st_mode)) return place;
    std::string target = link_target(place.dir->get(), place.name.c_str());
    at = clean(target.starts_with('/') ? target : cat(parent_of(at), "/", target));
    if (at.size() >= PATH_MAX) return failed("open", path, ENAMETOOLONG);
  }
  return failed("open", path, ELOOP);
}

Result<Fd> make_directories(const std::string& path, mode_t mode, std::vector<std::string>* made) {
  Fd at = open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY);
  if (at) return at;
  if (errno != ENOENT) return failed("make directory", path, errno);
  at = open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY);
  std::string walked;
  for (std::string_view part : split(std::string_view(path).substr(1), '/')) {
    std::string name(part);
    walked += cat("/", part);
    Fd next = open_at(at.get(), name, O_PATH | O_DIRECTORY);
    if (!next && errno == ENOENT) {
      bool fresh = ::mkdirat(at.get(), name.c_str(), mode) == 0;
      if (!fresh && errno != EEXIST) return failed("make directory", path, errno);
      if (fresh && made) made->push_back(walked);
      next = open_at(at.get(), name, O_PATH | O_DIRECTORY);
    }
    // A link to nothing is the one thing that is there and is not.
    if (!next) return errno == ENOENT ? refused(path, "leads through a link to nothing") : failed("make directory", path, errno);
    at = std::move(next);
  }
  return at;
}

void unmake_directories(const std::vector<std::string>& made) {
  for (auto path = made.rbegin(); path != made.rend(); ++path) ::rmdir(path->c_str());
}

Result<std::vector<std::string>> query_values(const http::Request& request, std::string_view name) {
  auto pairs = http::parse_query(request.query);
  if (!pairs) return std::move(pairs).error().with_code("INVALID_REQUEST_BODY");
  std::vector<std::string> values;
  for (auto& [key, value] : *pairs)
    if (key == name) values.push_back(std::move(value));
  return values;
}

Task<void> reply_failure(http::Responder& responder, Error error, std::string_view code) {
  int status = status_of(error.kind());
  std::string text = error.hint().empty() ? error.what() : cat(error.what(), "; ", error.hint());
  co_await reply_error(responder, status, error.code().empty() ? std::string(code) : error.code(), std::move(text));
}

}  // namespace osb::execd::files
