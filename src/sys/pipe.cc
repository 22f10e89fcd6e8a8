#include "sys/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace osb::sys {

Result<Pipe> make_pipe(int flags) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | flags) != 0) return Error::from_errno("pipe", errno, Errc::exhausted);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace osb::sys
