#include "enter/handed_mount.h"

#include <poll.h>

#include <cerrno>

#include "sys/descriptor_message.h"

namespace osb::enter {

int receive_mount(int socket) {
  pollfd ready{socket, POLLIN, 0};
  if (::poll(&ready, 1, 10'000) != 1) return errno = ETIMEDOUT, -1;
  int error = EIO;
  Fd mount;
  if (sys::receive_with_descriptor(socket, &error, sizeof error, 0, mount) != sizeof error) return errno = EIO, -1;
  if (error != 0 || !mount) return errno = error, -1;
  return mount.release();
}

}  // namespace osb::enter
