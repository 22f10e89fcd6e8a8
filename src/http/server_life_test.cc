// Upgrades, clients that go, stopping.
#include <atomic>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "http/test_player.h"

namespace osb::http {
namespace {

using namespace std::chrono_literals;

Task<void> shout(Request&, Responder& responder) {
  Headers headers;
  headers.add("Upgrade", "shout/1");
  auto stream = co_await responder.upgrade(101, headers);
  if (!stream) co_return;
  char buffer[64];
  for (;;) {
    auto got = co_await (*stream)->read_some(buffer);
    if (!got || *got == 0) co_return;
    std::string text(buffer, *got);
    for (auto& c : text) c = static_cast<char>(std::toupper(c));
    auto sent = co_await (*stream)->write_all(text);
    if (!sent) co_return;
  }
}

TEST(Server, HandsOverTheStreamWithTheBytesThatCameEarly) {
  TestBed bed([](Request& request, Responder& responder) { return shout(request, responder); });
  RawClient client(bed.port());
  client.send(get("/", "Connection: Upgrade\r\nUpgrade: shout/1\r\n") + "early");
  ASSERT_TRUE(client.read_until("EARLY"));
  EXPECT_TRUE(client.got().starts_with("HTTP/1.1 101 Switching Protocols\r\n"));
  EXPECT_NE(client.got().find("Connection: Upgrade\r\n"), std::string::npos);
  EXPECT_EQ(client.got().find("Content-Length"), std::string::npos);
  client.send("late");
  ASSERT_TRUE(client.read_until("LATE"));
  client.end();
  client.read_to_end();
}

Task<void> watch_client(Seen& seen, Responder& responder) {
  seen.add("started");
  co_await responder.closed();
  seen.add("client gone");
}

TEST(Server, TellsTheHandlerWhenTheClientGoes) {
  Seen seen;
  TestBed bed([&seen](Request&, Responder& responder) { return watch_client(seen, responder); });
  RawClient client(bed.port());
  client.send(get("/") + get("/pipelined"));
  while (seen.lines().empty()) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(client.silent(50));
  EXPECT_EQ(seen.lines().size(), 1u);
  client.close();
  while (seen.lines().size() < 2) std::this_thread::sleep_for(1ms);
  bed.stop(std::chrono::seconds(5));
  EXPECT_EQ(seen.lines(), (std::vector<std::string>{"started", "client gone"})) << "nobody is there for the second request";
}

TEST(Server, TellsTheHandlerOfAResetHoweverMuchWasPipelined) {
  Seen seen;
  TestBed bed([&seen](Request&, Responder& responder) { return watch_client(seen, responder); });
  RawClient client(bed.port());
  client.send(get("/") + std::string(100'000, 'x'));
  while (seen.lines().empty()) std::this_thread::sleep_for(1ms);
  linger now{1, 0};  // close() sends a reset
  ::setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  client.close();
  while (seen.lines().size() < 2) std::this_thread::sleep_for(1ms);
}

Task<void> work_unless_closed(Responder& responder) {
  using namespace asio::experimental::awaitable_operators;
  auto first = co_await (sleep_for(5ms) || responder.closed());
  auto sent = co_await responder.send(Response::text(200, first.index() == 0 ? "worked" : "gone"));
  (void)sent;
}

TEST(Server, GoesOnAfterWatchingForTheClientToGo) {
  TestBed bed([](Request&, Responder& responder) { return work_unless_closed(responder); });
  RawClient client(bed.port());
  for (int i = 0; i < 3; ++i) {
    client.send(get("/") + get("/"));
    ASSERT_TRUE(client.read_until("worked", 2)) << client.got();
    client.forget();
  }
}

struct Slow {
  std::atomic<int> started = 0;
  std::atomic<int> finished = 0;
  std::chrono::milliseconds time{};
};

Task<void> answer_slowly(Slow& slow, Responder& responder) {
  ++slow.started;
  co_await sleep_for(slow.time);
  auto sent = co_await responder.send(Response::text(200, "slow"));
  if (sent) ++slow.finished;
}

TEST(Server, FinishesRunningRequestsAndClosesIdleOnesWhenItStops) {
  Slow slow;
  slow.time = 200ms;
  TestBed bed([&slow](Request&, Responder& responder) { return answer_slowly(slow, responder); });
  RawClient idle(bed.port());
  RawClient busy(bed.port());
  busy.send(get("/"));
  while (slow.started == 0) std::this_thread::sleep_for(1ms);
  auto started = std::chrono::steady_clock::now();
  bed.stop(10s);
  EXPECT_LT(std::chrono::steady_clock::now() - started, 5s);
  EXPECT_EQ(idle.read_to_end(), "");
  auto got = busy.read_to_end();
  EXPECT_TRUE(got.ends_with("slow")) << got;
  EXPECT_NE(got.find("Connection: close\r\n"), std::string::npos);
}

TEST(Server, EndsRequestsThatOutlastTheGrace) {
  Slow slow;
  slow.time = 1h;
  TestBed bed([&slow](Request&, Responder& responder) { return answer_slowly(slow, responder); });
  RawClient busy(bed.port());
  busy.send(get("/"));
  while (slow.started == 0) std::this_thread::sleep_for(1ms);
  bed.stop(10ms);
  EXPECT_EQ(busy.read_to_end(), "");
  EXPECT_EQ(slow.finished, 0);
}

}  // namespace
}  // namespace osb::http
