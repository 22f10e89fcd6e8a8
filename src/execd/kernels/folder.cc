#include "execd/kernels/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id.h"
#include "base/text.h"

namespace osb::execd {
namespace {

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// execd is another user than the programs of a native sandbox.
bool give_away(int fd, const Setup& setup) { return !setup.native || ::fchown(fd, setup.who.uid, setup.who.gid) == 0; }

}  // namespace

Result<> KernelFolder::make(const Setup& setup) {
  if (folder_) return Ok{};
  int why = ENOENT;
  std::string name = cat("/.osb-kernels-", random_hex(4));
  for (std::string_view base : {value_of(setup.env, "TMPDIR"), std::string_view("/tmp"), std::string_view("/var/tmp"),
                                std::string_view("/dev/shm"), std::string_view(setup.home)}) {
    // Socket addresses hold 107 bytes.
    if (!base.starts_with('/') || base.size() > 60) continue;
    std::string path = cat(base, name);
    Fd folder(::mkdir(path.c_str(), 0700) == 0 ? ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1);
    if (folder && give_away(folder.get(), setup)) {
      path_ = std::move(path);
      folder_ = std::move(folder);
      return Ok{};
    }
    why = errno;
  }
  return Error::from_errno("no folder for the sockets of kernels", why, Errc::unavailable);
}

std::string KernelFolder::new_place() { return cat(path_, "/", ++next_); }

Result<> KernelFolder::write(const Setup& setup, const std::string& place, std::string_view text) {
  std::string name = cat(file_name(place), ".json");
  Fd file(::openat(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  bool written = file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || !give_away(file.get(), setup)) return Error::from_errno("write the connection file", errno, Errc::unavailable);
  return Ok{};
}

void KernelFolder::clean(const std::string& place) {
  for (const char* end : {"-1", "-2", "-3", "-4", "-5", ".json"}) ::unlinkat(folder_.get(), cat(file_name(place), end).c_str(), 0);
}

}  // namespace osb::execd
