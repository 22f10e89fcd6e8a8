#include <boost/asio/experimental/awaitable_operators.hpp>

#include "http/http.h"

namespace osb::http {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kTunnelBytes = 32 * 1024;

// What both directions know of each other: the tunnel is idle only when neither moves.
struct Pulse {
  Clock::time_point last = Clock::now();
  Clock::duration idle;
  bool beats() const { return Clock::now() - last < idle; }
};

Task<void> pump(Stream& from, Stream& to, Pulse& pulse) {
  auto buffer = std::make_unique<char[]>(kTunnelBytes);
  for (;;) {
    auto got = co_await from.read_some(std::span(buffer.get(), kTunnelBytes));
    if (!got && got.error().kind() == Errc::timeout && pulse.beats()) continue;
    if (!got) break;
    if (*got == 0) {
      to.shutdown_write();
      co_return;
    }
    pulse.last = Clock::now();
    auto sent = co_await to.write_all(std::string_view(buffer.get(), *got));
    // Whoever no longer listens may still have something to say (how a command ended that did not want all of its
    // input); the other direction carries it and ends when that side hangs up.
    if (!sent && sent.error().kind() != Errc::timeout) co_return;
    if (!sent) break;
    pulse.last = Clock::now();
  }
  // A broken or idle direction ends both: half of a broken tunnel only hides the break.
  from.close();
  to.close();
}

}  // namespace

Task<void> tunnel(Stream& a, Stream& b, Clock::duration idle) {
  using namespace asio::experimental::awaitable_operators;
  Pulse pulse{.idle = idle};
  a.set_deadline(idle);
  b.set_deadline(idle);
  co_await (pump(a, b, pulse) && pump(b, a, pulse));
}

}  // namespace osb::http
