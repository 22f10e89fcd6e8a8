#include "http/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace osb::http {
namespace {

constexpr int kSocketFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

Result<Fd> new_socket(int family) {
  Fd fd(::socket(family, kSocketFlags, 0));
  if (!fd) return Error::from_errno("socket", errno);
  return fd;
}

Errc bind_kind(int sys) {
  if (sys == EADDRINUSE) return Errc::conflict;
  return sys == EACCES || sys == EADDRNOTAVAIL ? Errc::invalid_argument : Errc::internal;
}

Result<> bind_and_listen(int fd, const Address& address, const std::string& name) {
  if (::bind(fd, address.get(), address.size) != 0) return Error::from_errno(cat("bind ", name), errno, bind_kind(errno));
  if (::listen(fd, SOMAXCONN) != 0) return Error::from_errno(cat("listen on ", name), errno, bind_kind(errno));
  return Ok{};
}

// Only a refused connection proves that nobody listens.
Result<> remove_stale(const std::string& path, const Address& address) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return Ok{};
  if (!S_ISSOCK(found.st_mode)) return Error(Errc::conflict, cat(path, " exists and is not a socket"));
  TRY(auto probe, new_socket(AF_UNIX));
  if (::connect(probe.get(), address.get(), address.size) == 0 || errno != ECONNREFUSED)
    return Error(Errc::conflict, cat(path, " is in use by another process"));
  if (::unlink(path.c_str()) != 0) return Error::from_errno(cat("remove stale ", path), errno);
  return Ok{};
}

}  // namespace

std::optional<Address> tcp_address(const std::string& host, std::uint16_t port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  const char* text = host == "localhost" ? "127.0.0.1" : host.c_str();
  if (::inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.size = sizeof *v6;
  } else {
    return std::nullopt;
  }
  return address;
}

std::optional<Address> unix_address(const std::string& path) {
  Address address;
  auto* un = reinterpret_cast<sockaddr_un*>(&address.storage);
  if (path.empty() || path.size() >= sizeof un->sun_path) return std::nullopt;
  un->sun_family = AF_UNIX;
  std::memcpy(un->sun_path, path.c_str(), path.size() + 1);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return address;
}

Result<Listener> listen_on_tcp(const std::string& address, std::uint16_t port) {
  auto target = tcp_address(address, port);
  if (!target) return Error(Errc::invalid_argument, cat("'", address, "' is not a numeric address"));
  TRY(auto fd, new_socket(target->storage.ss_family));
  int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  CHECK_OK(bind_and_listen(fd.get(), *target, cat(address, ":", port)));
  return Listener{std::move(fd), {}, 0, 0};
}

Result<Listener> listen_on_unix(const std::string& path, unsigned mode) {
  auto target = unix_address(path);
  if (!target) return Error(Errc::invalid_argument, cat("'", path, "' is empty or too long for a socket path"));
  CHECK_OK(remove_stale(path, *target));
  TRY(auto fd, new_socket(AF_UNIX));
  // The kernel makes the file with the socket's own mode, so there is no moment in which others could connect.
  if (::fchmod(fd.get(), mode) != 0) return Error::from_errno("set the mode of a socket", errno);
  CHECK_OK(bind_and_listen(fd.get(), *target, path));
  if (::chmod(path.c_str(), mode) != 0) return Error::from_errno(cat("chmod ", path), errno);
  struct stat made{};
  if (::lstat(path.c_str(), &made) != 0) return Error::from_errno(cat("stat ", path), errno);
  return Listener{std::move(fd), path, made.st_dev, made.st_ino};
}

Result<Listener> adopt_listener(Fd listening_socket) {
  int accepts = 0;
  socklen_t size = sizeof accepts;
  if (::getsockopt(listening_socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) != 0 || accepts == 0)
    return Error(Errc::invalid_argument, "the descriptor is not a listening socket");
  int flags = ::fcntl(listening_socket.get(), F_GETFL);
  if (::fcntl(listening_socket.get(), F_SETFL, flags | O_NONBLOCK) != 0 || ::fcntl(listening_socket.get(), F_SETFD, FD_CLOEXEC) != 0)
    return Error::from_errno("adopt a listening socket", errno);
  return Listener{std::move(listening_socket), {}, 0, 0};
}

void remove_socket_file(const Listener& listener) {
  struct stat found{};
  if (listener.path.empty() || ::lstat(listener.path.c_str(), &found) != 0) return;
  if (found.st_dev == listener.device && found.st_ino == listener.inode) ::unlink(listener.path.c_str());
}

std::uint16_t local_port(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
  return 0;
}

std::string peer_name(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char text[INET6_ADDRSTRLEN] = "";
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "unknown";
  if (address.ss_family == AF_INET) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    return cat(std::string_view(text), ":", ntohs(v4->sin_port));
  }
  if (address.ss_family == AF_INET6) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
    return cat("[", std::string_view(text), "]:", ntohs(v6->sin6_port));
  }
  return "unix";
}

void set_no_delay(int fd) {
  int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace osb::http
