#include <sys/resource.h>

#include <atomic>

#include "http/test_player.h"

namespace osb::http {
namespace {

using namespace std::chrono_literals;

Limits tight() {
  Limits limits;
  limits.header_bytes = 2048;
  limits.header_fields = 10;
  limits.target_bytes = 256;
  limits.header_deadline = 1s;
  limits.idle_deadline = 1s;
  limits.body_stall_deadline = 1s;
  limits.write_stall_deadline = 1s;
  limits.connections = 3;
  return limits;
}

class LimitsTest : public testing::Test {
 protected:
  Seen seen_;
  TestBed bed_{player(seen_), tight()};
};

TEST_F(LimitsTest, RefusesLargeHeads) {
  EXPECT_TRUE(bed_.exchange(get("/hello", "X: " + std::string(100'000, 'x') + "\r\n")).starts_with("HTTP/1.1 431 "));
  std::string fields;
  for (int i = 0; i < 10; ++i) fields += "A: b\r\n";
  EXPECT_TRUE(bed_.exchange(get("/hello", fields)).starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(bed_.exchange(get("/hello", fields.substr(6))).starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(bed_.exchange(get("/" + std::string(1 << 20, 'x'))).starts_with("HTTP/1.1 414 "));
  EXPECT_TRUE(bed_.exchange(get("/" + std::string(256, 'x'))).starts_with("HTTP/1.1 414 "));
  EXPECT_TRUE(bed_.exchange(get("/hello?" + std::string(249, 'x'))).starts_with("HTTP/1.1 200 "));
}

TEST_F(LimitsTest, ClosesASlowHeadWith408HoweverItDrips) {
  RawClient client(bed_.port());
  auto started = std::chrono::steady_clock::now();
  std::thread drip([&client] {
    for (int i = 0; i < 30; ++i) {
      client.send("G");
      std::this_thread::sleep_for(100ms);
    }
  });
  EXPECT_TRUE(client.read_until("HTTP/1.1 408 ")) << client.got();
  auto took = std::chrono::steady_clock::now() - started;
  drip.join();
  EXPECT_GE(took, 900ms);
  EXPECT_LT(took, 2900ms);
}

TEST_F(LimitsTest, ClosesAnIdleConnectionWithoutAWord) {
  RawClient client(bed_.port());
  EXPECT_EQ(client.read_to_end(), "");
  RawClient used(bed_.port());
  used.send(get("/hello"));
  EXPECT_TRUE(used.read_until("hello"));
  used.forget();
  EXPECT_EQ(used.read_to_end(), "");
}

TEST_F(LimitsTest, GivesUpOnABodyThatStalls) {
  RawClient client(bed_.port());
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  auto got = client.read_to_end();
  EXPECT_TRUE(got.starts_with("HTTP/1.1 408 ")) << got;
}

TEST_F(LimitsTest, TurnsAwayMoreConnectionsThanAllowed) {
  RawClient a(bed_.port()), b(bed_.port()), c(bed_.port());
  for (auto* client : {&a, &b, &c}) {
    client->send(get("/hello"));
    ASSERT_TRUE(client->read_until("hello"));
  }
  RawClient d(bed_.port());
  auto got = d.read_to_end();
  EXPECT_TRUE(got.starts_with("HTTP/1.1 503 ")) << got;
  EXPECT_NE(got.find("X-Request-ID: "), std::string::npos);
  a.close();
  // The place is free once the server has seen the end of `a`.
  for (;;) {
    RawClient again(bed_.port());
    again.send(get("/hello"));
    if (again.read_until("HTTP/1.1 200 ")) break;
  }
}

Task<void> flood(std::atomic<bool>& stalled, Responder& responder) {
  std::string block(1 << 16, 'x');
  Headers none;
  auto sent = co_await responder.begin(200, none);
  while (sent) sent = co_await responder.chunk(block);
  stalled = sent.error().kind() == Errc::timeout;
}

TEST(Server, GivesUpOnAReaderThatDoesNotRead) {
  std::atomic<bool> stalled = false;
  TestBed bed([&stalled](Request&, Responder& responder) { return flood(stalled, responder); }, tight());
  RawClient client(bed.port());
  client.send(get("/"));
  while (!stalled) std::this_thread::sleep_for(10ms);
  EXPECT_NE(client.read_to_end().find("HTTP/1.1 200 "), std::string::npos);
}

std::size_t lowest_free_descriptor() {
  Fd probe(::dup(0));
  return static_cast<std::size_t>(probe.get());
}

TEST(Server, WaitsForDescriptorsInsteadOfSpinning) {
  Seen seen;
  TestBed bed(player(seen));
  {
    // The server's thread is under way before descriptors get scarce: starting it may need one, under sanitizers at least.
    RawClient first(bed.port());
    first.send(get("/hello", "Connection: close\r\n"));
    ASSERT_TRUE(first.read_to_end().ends_with("hello"));
  }
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit scarce{lowest_free_descriptor() + 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &scarce), 0);
  RawClient client(bed.port());  // takes the last one
  client.send(get("/hello", "Connection: close\r\n"));
  EXPECT_TRUE(client.silent(150));
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(client.read_to_end().ends_with("hello"));
}

}  // namespace
}  // namespace osb::http
