#include "execd/shell/fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id.h"
#include "base/text.h"

namespace osb::execd::shell {
namespace {

// Where a sandbox can be written to whatever its image is.
constexpr const char* kPlaces[] = {"/dev/shm", "/run", "/tmp", "/var/tmp"};

}  // namespace

Result<Fifo> Fifo::make(const Identity* owner) {
  int problem = 0;
  for (const char* place : kPlaces) {
    std::string path = cat(place, "/.osb-", random_hex(16));
    if (::mkfifo(path.c_str(), 0600) != 0) {
      problem = errno;
      continue;
    }
    Fd read(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    Fd write(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    problem = errno;
    bool ready = read && write && (!owner || ::fchown(read.get(), owner->uid, owner->gid) == 0);
    if (ready) return Fifo(std::move(path), std::move(read), std::move(write));
    if (read && write) problem = errno;
    ::unlink(path.c_str());
  }
  return Error::from_errno("no directory for a pipe: /dev/shm, /run, /tmp and /var/tmp cannot be written to", problem, Errc::unavailable);
}

void Fifo::remove() {
  if (!path_.empty()) ::unlink(path_.c_str());
  path_.clear();
  write_.reset();
}

}  // namespace osb::execd::shell
