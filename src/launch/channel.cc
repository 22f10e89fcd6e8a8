#include "launch/channel.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace osb::launch {
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

Result<bool> Channel::receive(Received& into) {
  iovec part{into.bytes, sizeof into.bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = -1;
  do n = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (n < 0) return Error::from_errno("recvmsg", errno, Errc::unavailable);
  into.descriptor.reset();
  take_descriptors(message, into.descriptor);
  if (n == 0) return Error(Errc::unavailable, "peer closed");
  if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) return Error(Errc::invalid_argument, "message too long");
  into.size = static_cast<std::size_t>(n);
  return true;
}

Result<> Channel::send(const void* message, std::size_t size, int descriptor) {
  iovec part{const_cast<void*>(message), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  ssize_t n = -1;
  do n = ::sendmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  if (n < 0) return Error::from_errno("sendmsg", errno, Errc::unavailable);
  return Ok{};
}

Result<Fd> listen_seqpacket(const std::string& path) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::from_errno("socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error(Errc::invalid_argument, "socket path is too long: " + path);
  std::memcpy(address.sun_path, path.data(), path.size());
  ::unlink(path.c_str());
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return Error::from_errno("bind " + path, errno);
  if (::chmod(path.c_str(), 0600) != 0) return Error::from_errno("chmod " + path, errno);
  if (::listen(socket.get(), 16) != 0) return Error::from_errno("listen " + path, errno);
  return socket;
}

bool peer_is_allowed(int socket, unsigned allowed_uid) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == allowed_uid;
}

}  // namespace osb::launch
