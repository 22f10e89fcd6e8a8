#include "launch/channel.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "sys/descriptor_message.h"
#include "sys/kernel_file.h"

namespace osb::launch {
namespace {

constexpr std::size_t kMostWaiting = 65'536;

}  // namespace

bool read_create(const Received& message, wire::CreateRequest& into) {
  constexpr std::size_t kWithoutLayers = sizeof(wire::CreateRequest) - sizeof(wire::CreateRequest::layers);
  if (message.size < kWithoutLayers) return false;
  into = {};
  std::memcpy(&into, message.bytes, std::min(message.size, sizeof into));
  return message.size >= kWithoutLayers + into.layer_count * sizeof(wire::Digest);
}

Result<bool> Channel::receive(Received& into) {
  auto n = sys::receive_with_descriptor(socket_.get(), into.bytes, sizeof into.bytes, MSG_DONTWAIT, into.descriptor);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (n < 0) return Error::from_errno("recvmsg", errno, Errc::unavailable);
  if (n == 0) return Error(Errc::unavailable, "peer closed");
  into.size = static_cast<std::size_t>(n);
  return true;
}

// The end of every sandbox is told to every client: a thousand deletes at once are a thousand answers and a thousand ends, more than
// a socket holds, while the one who asked has other things to read.
Result<> Channel::send(const void* message, std::size_t size, int descriptor) {
  if (waiting_.empty() && sys::send_with_descriptor(socket_.get(), message, size, descriptor) >= 0) return Ok{};
  bool full = !waiting_.empty() || errno == EAGAIN || errno == EWOULDBLOCK;
  if (!full) return Error::from_errno("sendmsg", errno, Errc::unavailable);
  if (waiting_.size() == kMostWaiting) return Error(Errc::unavailable, "the peer reads nothing");
  Fd kept(descriptor < 0 ? -1 : ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
  if (descriptor >= 0 && !kept) return Error::from_errno("dup", errno);
  waiting_.push_back({std::string(static_cast<const char*>(message), size), std::move(kept)});
  return Ok{};
}

Result<> Channel::send_waiting() {
  for (; !waiting_.empty(); waiting_.pop_front()) {
    const auto& next = waiting_.front();
    if (sys::send_with_descriptor(socket_.get(), next.bytes.data(), next.bytes.size(), next.descriptor.get()) >= 0) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Ok{};
    return Error::from_errno("sendmsg", errno, Errc::unavailable);
  }
  return Ok{};
}

Result<> Channel::catch_up(int epoll) {
  CHECK_OK(send_waiting());
  epoll_event event{};
  event.events = is_behind() ? EPOLLOUT : EPOLLIN;
  event.data.fd = fd();
  if (::epoll_ctl(epoll, EPOLL_CTL_MOD, fd(), &event) != 0) return Error::from_errno("epoll mod", errno);
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

Result<Fd> listen_for_execd(const std::string& directory, const std::string& id, unsigned owner) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  TRY(auto dir, sys::open_dir(directory));
  if (!socket) return Error::from_errno("socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Through the directory's descriptor the name fits whatever the length of the run directory.
  std::string path = cat("/proc/self/fd/", dir.get(), "/", id, ".sock");
  std::memcpy(address.sun_path, path.data(), path.size());
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return Error::from_errno("bind", errno);
  if (owner != 0 && ::fchownat(dir.get(), (id + ".sock").c_str(), owner, 0, AT_SYMLINK_NOFOLLOW) != 0)
    return Error::from_errno("chown socket", errno);
  if (::listen(socket.get(), 128) != 0) return Error::from_errno("listen", errno);
  return socket;
}

bool peer_is_allowed(int socket, unsigned allowed_uid) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == allowed_uid;
}

}  // namespace osb::launch
