#include <sys/socket.h>

#include <cerrno>
#include <list>

#include "async/task_group.h"
#include "base/log.h"
#include "base/text.h"
#include "http/head_writer.h"
#include "http/http.h"
#include "http/listener.h"
#include "http/session.h"

namespace osb::http {
namespace {

constexpr int kAcceptBurst = 32;
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

bool is_shortage(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

// What a client hears when every place is taken; one attempt, no waiting.
void turn_away(int fd) {
  std::string out;
  auto body = error_json("SERVER_BUSY", "too many connections; try again shortly");
  Headers headers;
  headers.add("Content-Type", "application/json");
  headers.add("Retry-After", "1");
  auto id = new_request_id();
  ResponseHead head{.status = 503, .headers = headers, .request_id = id, .length = body.size(), .close = true};
  append_head(out, head);
  out += body;
  (void)::send(fd, out.data(), out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

struct Server::Impl {
  Impl(asio::io_context& context, Limits l, Handler h)
      : io(context), limits(l), handler(std::move(h)), acceptors(io.get_executor()), tasks(io.get_executor()) {}

  Result<std::uint16_t> open(Listener listener);
  Task<void> accept_loop(Socket& socket);
  int accept_burst(int listening);
  void welcome(Fd fd);
  Task<void> serve(Fd fd);
  void close_listeners();

  asio::io_context& io;
  Limits limits;
  Handler handler;
  FindPeer find_peer;
  struct Open {
    Listener listener;  // its descriptor has moved into `socket`
    std::unique_ptr<Socket> socket;
  };
  std::list<Open> listeners;
  std::list<Session*> sessions;
  bool stopping = false;
  TaskGroup acceptors;
  TaskGroup tasks;
};

Result<std::uint16_t> Server::Impl::open(Listener listener) {
  auto port = local_port(listener.fd.get());
  auto socket = std::make_unique<Socket>(io.get_executor(), std::move(listener.fd));
  if (socket->closed()) return Error(Errc::internal, "the event loop does not take the listening socket");
  auto& opened = listeners.emplace_back(Open{std::move(listener), std::move(socket)});
  acceptors.spawn("accept", accept_loop(*opened.socket));
  return port;
}

Task<void> Server::Impl::accept_loop(Socket& socket) {
  bool paused = false;
  while (!stopping) {
    auto ready = co_await socket.wait_readable();
    if (!ready) co_return;
    int error = accept_burst(socket.native());
    bool shortage = is_shortage(error);
    if (shortage && !paused) log::warn("accept pauses: no descriptor or memory left", {{"connections", tasks.size()}, {"errno", error}});
    paused = shortage;
    // The connection that waits keeps the socket readable: without a pause this would spin.
    if (shortage) co_await sleep_for(kAcceptPause);
  }
}

// Takes what waits, so many at most; gives the error that ended it, 0 when the burst was full.
int Server::Impl::accept_burst(int listening) {
  for (int i = 0; i < kAcceptBurst; ++i) {
    Fd fd(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      welcome(std::move(fd));
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return errno;
    }
  }
  return 0;
}

void Server::Impl::welcome(Fd fd) {
  if (tasks.size() >= limits.connections) return turn_away(fd.get());
  tasks.spawn("http", serve(std::move(fd)));
}

Task<void> Server::Impl::serve(Fd fd) {
  set_no_delay(fd.get());
  auto peer = peer_name(fd.get());
  auto uid = find_peer ? find_peer(fd.get()) : std::nullopt;
  auto session = std::make_unique<Session>(io.get_executor(), std::move(fd), std::move(peer), uid, limits, handler);
  struct Listed {
    std::list<Session*>& all;
    std::list<Session*>::iterator self;
    ~Listed() { all.erase(self); }
  } listed{sessions, sessions.insert(sessions.end(), session.get())};
  if (stopping) co_return;
  co_await session->run();
}

void Server::Impl::close_listeners() {
  for (auto& opened : listeners) {
    remove_socket_file(opened.listener);
    opened.socket->close();
  }
}

Server::Server(asio::io_context& io, Limits limits, Handler handler) : impl_(std::make_unique<Impl>(io, limits, std::move(handler))) {}

Server::~Server() = default;

Result<std::uint16_t> Server::listen_tcp(const std::string& address, std::uint16_t port) {
  TRY(auto listener, listen_on_tcp(address, port));
  return impl_->open(std::move(listener));
}

Result<> Server::listen_unix(const std::string& path, unsigned mode) {
  TRY(auto listener, listen_on_unix(path, mode));
  CHECK_OK(impl_->open(std::move(listener)));
  return Ok{};
}

Result<> Server::listen_fd(Fd listening_socket) {
  TRY(auto listener, adopt_listener(std::move(listening_socket)));
  CHECK_OK(impl_->open(std::move(listener)));
  return Ok{};
}

void Server::set_find_peer(FindPeer find) { impl_->find_peer = std::move(find); }

Task<void> Server::stop(std::chrono::steady_clock::duration grace) {
  impl_->stopping = true;
  impl_->close_listeners();
  co_await impl_->acceptors.stop();
  for (auto* session : impl_->sessions) session->retire();
  co_await impl_->tasks.wait_idle(grace);
  co_await impl_->tasks.stop();
}

std::size_t Server::connections() const { return impl_->tasks.size(); }

}  // namespace osb::http
