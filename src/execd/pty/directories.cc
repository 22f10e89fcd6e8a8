#include "execd/pty/directories.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "sys/raw.h"

namespace osb::execd {
namespace {

Fd open_directory(int at, const char* name) {
  int fd = sys::raw::openat2(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC, RESOLVE_NO_MAGICLINKS);
  if (fd < 0 && errno == ENOSYS) fd = ::openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return Fd(fd);
}

Fd make_directory(int at, const char* name, const Setup& setup) {
  if (::mkdirat(at, name, 0755) != 0 && errno != EEXIST) return {};
  // Not through a link that somebody puts there meanwhile: what was made is no link.
  if (setup.native && ::fchownat(at, name, setup.who.uid, setup.who.gid, AT_SYMLINK_NOFOLLOW) != 0) return {};
  return open_directory(at, name);
}

}  // namespace

Result<> make_directories(const std::string& path, const Setup& setup) {
  Fd at = open_directory(AT_FDCWD, "/");
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    std::string name(part);
    Fd next = open_directory(at.get(), name.c_str());
    if (!next && errno == ENOENT) next = make_directory(at.get(), name.c_str(), setup);
    if (!next) return Error::from_errno(cat("cwd ", json_string(path)), errno, Errc::internal).at("cwd");
    at = std::move(next);
  }
  return Ok{};
}

}  // namespace osb::execd
