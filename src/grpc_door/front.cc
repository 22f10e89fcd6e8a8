#include "grpc_door/front.h"

#include <sys/socket.h>

#include <cerrno>

#include "base/log.h"
#include "grpc_door/h2_gate.h"
#include "http/listener.h"

namespace osb::grpc_door {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kBlock = 16 * 1024;
constexpr auto kPause = std::chrono::milliseconds(50);
constexpr auto kPartingTime = std::chrono::seconds(1);

struct Pair {
  Fd ours, theirs;
};

Result<Pair> make_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return Error::from_errno("socketpair", errno);
  return Pair{Fd(ends[0]), Fd(ends[1])};
}

// Client to library. True when the client is to be told that it went too far.
Task<bool> pass_checked(http::Socket& from, http::Socket& to, H2Gate& gate, Clock::duration preface) {
  auto block = std::make_unique_for_overwrite<char[]>(kBlock);
  from.set_read_limit(Clock::now() + preface);
  for (;;) {
    auto got = co_await from.read_some(std::span(block.get(), kBlock));
    if (!got || *got == 0) co_return false;
    std::string_view bytes(block.get(), *got);
    if (!gate.take(bytes, Clock::now())) co_return gate.greeted();
    if (gate.greeted()) from.set_read_limit(Clock::time_point::max());
    auto sent = co_await to.write_all(bytes);
    if (!sent) co_return false;
  }
}

Task<void> pass_back(http::Socket& from, http::Socket& to) {
  auto block = std::make_unique_for_overwrite<char[]>(kBlock);
  for (;;) {
    auto got = co_await from.read_some(std::span(block.get(), kBlock));
    if (!got || *got == 0) break;
    std::string_view bytes(block.get(), *got);
    auto sent = co_await to.write_all(bytes);
    if (!sent) break;
  }
  to.close();
}

}  // namespace

Front::Front(asio::io_context& io, Fd listener, FrontLimits limits, std::function<void(Fd)> adopt)
    : io_(io),
      listener_(io.get_executor(), std::move(listener)),
      limits_(limits),
      adopt_(std::move(adopt)),
      acceptor_(io.get_executor()),
      connections_(io.get_executor()) {}

void Front::start() { acceptor_.spawn("accept", accept_loop()); }

Task<void> Front::accept_loop() {
  for (;;) {
    // At the bound the others wait in the kernel's queue: nothing is spent on them.
    while (connections_.size() >= limits_.connections) co_await sleep_for(kPause);
    auto ready = co_await listener_.wait_readable();
    if (!ready) co_return;
    Fd fd(::accept4(listener_.native(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      connections_.spawn("connection", serve(std::move(fd)));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      log::warn("accept pauses: no descriptor or memory left");
      co_await sleep_for(kPause);
    }
  }
}

Task<void> Front::serve(Fd fd) {
  co_await asio::this_coro::throw_if_cancelled(false);
  http::set_no_delay(fd.get());
  auto peer = http::peer_name(fd.get());
  http::Socket client(io_.get_executor(), std::move(fd));
  auto pair = make_pair();
  if (!pair) co_return;
  http::Socket library(io_.get_executor(), std::move(pair->ours));
  adopt_(std::move(pair->theirs));
  H2Gate gate;
  TaskGroup back(io_.get_executor());
  back.spawn("answers", pass_back(library, client));
  bool tell = co_await pass_checked(client, library, gate, limits_.preface);
  if (!gate.why().empty()) log::warn("connection refused", {{"peer", peer}, {"why", gate.why()}});
  library.close();
  co_await back.stop();
  if (tell && !client.closed()) {
    client.set_write_stall(kPartingTime);
    auto farewell = goaway();
    [[maybe_unused]] auto sent = co_await client.write_all(farewell);
  }
  client.close();
}

}  // namespace osb::grpc_door
