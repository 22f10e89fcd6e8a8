#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/text.h"
#include "http/client.h"
#include "http/http.h"
#include "http/listener.h"

namespace osb::http {
namespace {

using Clock = std::chrono::steady_clock;
// A unix socket with a full backlog cannot be waited for, only asked again.
constexpr auto kBacklogPause = std::chrono::milliseconds(5);

Error no_connection(const std::string& name, int sys) {
  return sys == ETIMEDOUT ? Error(Errc::timeout, cat("connect to ", name, ": no answer in time"))
                          : Error::from_errno(cat("connect to ", name), sys, Errc::unavailable);
}

int pending_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

// Waits for a connect in progress; gives the socket's error, 0 when connected.
Task<int> finish_connect(Socket& socket, Clock::time_point until) {
  socket.set_write_limit(until);
  auto ready = co_await socket.wait_writable();
  socket.set_write_limit(Clock::time_point::max());
  if (!ready) co_return ready.error().kind() == Errc::timeout ? ETIMEDOUT : ECONNABORTED;
  co_return pending_error(socket.native());
}

Task<Result<>> connect_socket(Socket& socket, Address address, std::string name, Clock::time_point until) {
  if (socket.closed()) co_return Error(Errc::internal, "the event loop does not take the socket");
  if (address.storage.ss_family != AF_UNIX) set_no_delay(socket.native());
  int error = 0;
  while (::connect(socket.native(), address.get(), address.size) != 0) {
    error = errno;
    if (error == EAGAIN && Clock::now() < until) {
      co_await sleep_for(kBacklogPause);
      continue;
    }
    if (error == EAGAIN) error = ETIMEDOUT;
    if (error == EINPROGRESS || error == EINTR) error = co_await finish_connect(socket, until);
    if (error == 0) break;
    co_return no_connection(name, error);
  }
  co_return Ok{};
}

struct Route {
  Address address;
  std::string name;
};

Result<Route> route_to(const Target& target) {
  if (target.kind == Target::Kind::unix_path) {
    auto address = unix_address(target.host_or_path);
    if (!address) return Error(Errc::invalid_argument, cat("'", target.host_or_path, "' is no socket path"));
    return Route{*address, target.host_or_path};
  }
  auto address = tcp_address(target.host_or_path, target.port);
  if (!address) return Error(Errc::invalid_argument, cat("'", target.host_or_path, "' is not a numeric address"));
  return Route{*address, cat(target.host_or_path, ":", target.port)};
}

std::string host_field(const Target& target) {
  if (target.kind == Target::Kind::unix_path) return "localhost";
  bool v6 = target.host_or_path.find(':') != std::string::npos;
  return v6 ? cat("[", target.host_or_path, "]:", target.port) : cat(target.host_or_path, ":", target.port);
}

Task<Result<std::unique_ptr<Client>>> connect_client(Target target, Clock::time_point until) {
  CO_TRY(auto route, route_to(target));
  Fd fd(::socket(route.address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) co_return Error::from_errno("socket", errno);
  auto executor = co_await asio::this_coro::executor;
  auto client = std::make_unique<Client>(executor, std::move(fd), host_field(target));
  auto connected = co_await connect_socket(client->socket(), route.address, route.name, until);
  if (!connected) co_return std::move(connected).error();
  co_return client;
}

}  // namespace

Task<Result<std::unique_ptr<ClientConnection>>> connect(Target target, Clock::duration deadline) {
  CO_TRY(auto client, co_await connect_client(std::move(target), Clock::now() + deadline));
  std::unique_ptr<ClientConnection> connection = std::move(client);
  co_return connection;
}

Task<Result<std::unique_ptr<Socket>>> dial(Target target, Clock::duration deadline) {
  CO_TRY(auto route, route_to(target));
  Fd fd(::socket(route.address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) co_return Error::from_errno("socket", errno);
  auto executor = co_await asio::this_coro::executor;
  auto socket = std::make_unique<Socket>(executor, std::move(fd));
  auto connected = co_await connect_socket(*socket, route.address, route.name, Clock::now() + deadline);
  if (!connected) co_return std::move(connected).error();
  co_return socket;
}

Task<Result<std::unique_ptr<ClientConnection>>> connect_fd(Fd socket, std::uint16_t port, Clock::duration deadline) {
  int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0 || ::fcntl(socket.get(), F_SETFD, FD_CLOEXEC) != 0)
    co_return Error::from_errno("prepare the socket", errno);
  auto address = tcp_address("127.0.0.1", port);
  auto executor = co_await asio::this_coro::executor;
  auto client = std::make_unique<Client>(executor, std::move(socket), cat("127.0.0.1:", port));
  auto connected = co_await connect_socket(client->socket(), *address, cat("port ", port), Clock::now() + deadline);
  if (!connected) co_return std::move(connected).error();
  std::unique_ptr<ClientConnection> connection = std::move(client);
  co_return connection;
}

Task<Result<ClientResponse>> fetch(Target target, ClientRequest request, Clock::duration deadline, std::size_t limit) {
  auto until = Clock::now() + deadline;
  CO_TRY(auto client, co_await connect_client(std::move(target), until));
  client->limit_to(until);
  CO_TRY(auto head, co_await client->start(std::move(request)));
  CO_TRY(auto body, co_await client->body().read_all(limit));
  co_return ClientResponse{head.status, std::move(head.headers), std::move(body)};
}

}  // namespace osb::http
