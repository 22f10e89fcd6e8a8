#include "execd/pty/device.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace osb::execd {
namespace {

Error no_terminal(int sys) {
  bool taken = sys == ENOSPC || sys == EMFILE || sys == ENFILE || sys == ENOMEM || sys == EAGAIN;
  return Error::from_errno("open a terminal", sys, taken ? Errc::exhausted : Errc::unsupported);
}

}  // namespace

Result<TerminalEnds> open_terminal(WindowSize size, const std::uint32_t* owner) {
  TerminalEnds ends;
  ends.master.reset(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  int unlocked = 0;
  if (!ends.master || ::ioctl(ends.master.get(), TIOCSPTLCK, &unlocked) != 0) return no_terminal(errno);
  // The other end of this very master: a path could by now mean something else.
  ends.slave.reset(::ioctl(ends.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!ends.slave) return no_terminal(errno);
  if (owner && ::fchown(ends.slave.get(), *owner, static_cast<gid_t>(-1)) != 0) return Error::from_errno("give the terminal away", errno);
  resize_terminal(ends.master.get(), size);
  return ends;
}

void resize_terminal(int master, WindowSize size) {
  if (size.cols == 0 || size.rows == 0) return;
  winsize window{.ws_row = size.rows, .ws_col = size.cols, .ws_xpixel = 0, .ws_ypixel = 0};
  ::ioctl(master, TIOCSWINSZ, &window);
}

int foreground_group(int master) {
  pid_t group = 0;
  return ::ioctl(master, TIOCGPGRP, &group) == 0 && group > 1 ? group : 0;
}

}  // namespace osb::execd
