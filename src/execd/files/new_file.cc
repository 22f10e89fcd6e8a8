#include "execd/files/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/id.h"
#include "base/text.h"

namespace osb::execd::files {

Result<NewFile> NewFile::beside(Place place) {
  if (place.exists && !S_ISREG(place.info.st_mode)) return refused(place.path, "is not a regular file");
  if (place.name.size() > 255) return failed("write", place.path, ENAMETOOLONG);
  std::string hidden = cat(".osb-", random_hex(12));
  Fd fd(::openat(place.dir->get(), hidden.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return failed("write", place.path, errno);
  return NewFile(std::move(place), std::move(hidden), std::move(fd));
}

NewFile::~NewFile() {
  if (!hidden_.empty()) ::unlinkat(place_.dir->get(), hidden_.c_str(), 0);
}

Result<> NewFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    auto n = ::write(fd_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("write", place_.path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return Ok{};
}

Result<> NewFile::seal(Permission permission, mode_t fresh_mode) {
  if (place_.exists) {
    permission.uid = permission.uid.value_or(place_.info.st_uid);
    permission.gid = permission.gid.value_or(place_.info.st_gid);
  }
  if (!permission.mode) permission.mode = place_.exists ? place_.info.st_mode & 0777 : fresh_mode;
  CHECK_OK(apply(permission, fd_, place_.path));
  fd_.reset();
  return Ok{};
}

Result<> NewFile::commit() {
  if (::renameat(place_.dir->get(), hidden_.c_str(), place_.dir->get(), place_.name.c_str()) != 0)
    return failed("write", place_.path, errno);
  hidden_.clear();
  return Ok{};
}

}  // namespace osb::execd::files
