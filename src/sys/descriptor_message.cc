#include "sys/descriptor_message.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace osb::sys {
namespace {

void take_descriptors(msghdr& message, Fd& first) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      Fd owned(fd);
      if (!first) first = std::move(owned);
    }
  }
}

}  // namespace

ssize_t send_with_descriptor(int socket, const void* bytes, std::size_t size, int descriptor) {
  return send_with_descriptors(socket, bytes, size, &descriptor, descriptor >= 0 ? 1 : 0);
}

ssize_t send_with_descriptors(int socket, const void* bytes, std::size_t size, const int* descriptors, std::size_t count) {
  iovec part{const_cast<void*>(bytes), size};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
  if (count > kMostDescriptors) return errno = EINVAL, -1;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), descriptors, count * sizeof(int));
  }
  ssize_t n = -1;
  do n = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  return n;
}

ssize_t receive_with_descriptors(int socket, void* bytes, std::size_t size, int* descriptors, std::size_t& count) {
  iovec part{bytes, size};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = -1;
  do n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  count = 0;
  if (n < 0) return n;
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::memcpy(descriptors, CMSG_DATA(each), count * sizeof(int));
  }
  if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) return errno = EMSGSIZE, -1;
  return n;
}

ssize_t receive_with_descriptor(int socket, void* bytes, std::size_t size, int flags, Fd& descriptor) {
  iovec part{bytes, size};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = -1;
  do n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
  while (n < 0 && errno == EINTR);
  if (n < 0) return n;
  descriptor.reset();
  take_descriptors(message, descriptor);
  if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) return errno = EMSGSIZE, -1;
  return n;
}

}  // namespace osb::sys
