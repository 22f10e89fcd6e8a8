// Listening sockets: made or adopted, always CLOEXEC and non-blocking.
#pragma once
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace osb::http {

struct Listener {
  Fd fd;
  std::string path;  // of a unix socket made here; removed when the listener ends
  dev_t device = 0;
  ino_t inode = 0;
};

Result<Listener> listen_on_tcp(const std::string& address, std::uint16_t port);
// A socket file nobody listens on is replaced; one in use is a conflict. The file never has a wider mode than asked for.
Result<Listener> listen_on_unix(const std::string& path, unsigned mode);
Result<Listener> adopt_listener(Fd listening_socket);
void remove_socket_file(const Listener& listener);  // only if it is still the one made here

std::uint16_t local_port(int fd);  // 0 when it is no TCP socket
std::string peer_name(int fd);     // "127.0.0.1:4711", "[::1]:4711" or "unix"
void set_no_delay(int fd);         // does nothing on a unix socket

// A socket address and its length, ready for bind(2) and connect(2).
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
std::optional<Address> tcp_address(const std::string& host, std::uint16_t port);  // numeric, or "localhost"
std::optional<Address> unix_address(const std::string& path);                     // nullopt when it is too long

}  // namespace osb::http
