#include "sys/descriptor_message.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace osb::sys {
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

ssize_t receive_with_descriptors(int socket, void* bytes, std::size_t size, int flags, int* descriptors, std::size_t& count) {
  iovec part{bytes, size};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = -1;
  do n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
  while (n < 0 && errno == EINTR);
  count = 0;
  if (n < 0) return n;
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);  // the kernel makes one part of them all
    std::memcpy(descriptors, CMSG_DATA(each), count * sizeof(int));
  }
  if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) return errno = EMSGSIZE, -1;
  return n;
}

ssize_t receive_with_descriptor(int socket, void* bytes, std::size_t size, int flags, Fd& descriptor) {
  int descriptors[kMostDescriptors];
  std::size_t count = 0;
  ssize_t n = receive_with_descriptors(socket, bytes, size, flags, descriptors, count);
  int error = errno;
  if (n >= 0 || count > 0) descriptor.reset();
  for (std::size_t i = 0; i < count; ++i) {
    Fd owned(descriptors[i]);
    if (i == 0) descriptor = std::move(owned);
  }
  errno = error;
  return n;
}

}  // namespace osb::sys
