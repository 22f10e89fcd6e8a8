#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <stdexcept>

#include "http/test_bed.h"

namespace osb::http {
namespace {

using namespace std::chrono_literals;

// One handler for most tests: the path says what to do.
Task<void> play(Seen& seen, Request& request, Responder& responder) {
  seen.add(request.method + " " + request.target);
  auto path = request.path;
  Result<> done = Ok{};
  if (path == "/throw") throw std::runtime_error("a secret reason");
  if (path == "/silent") co_return;
  if (path == "/empty") done = co_await responder.send(Response::empty(204));
  if (path == "/unchanged") done = co_await responder.send(Response::empty(304));
  if (path == "/hello") done = co_await responder.send(Response::text(200, "hello"));
  if (path == "/ignore") done = co_await responder.send(Response::text(200, "ignored"));
  if (path == "/inject") {
    Response response = Response::text(200, "x");
    response.headers.add("X-Name", "a\r\nSet-Cookie: stolen");
    done = co_await responder.send(std::move(response));
    EXPECT_FALSE(done);
    co_return;
  }
  if (path == "/echo") {
    auto body = co_await request.body->read_all(100'000);
    if (!body) {
      int status = body.error().kind() == Errc::too_large ? 413 : body.error().kind() == Errc::timeout ? 408 : 400;
      done = co_await responder.send(Response::text(status, body.error().what()));
      co_return;
    }
    done = co_await responder.send(Response::text(200, *body));
  }
  if (path == "/stream") {
    done = co_await responder.begin(200, Headers{}, "one");
    done = co_await responder.chunk("");
    done = co_await responder.chunk("three");
    done = co_await responder.end();
  }
  if (path == "/measured" || path == "/short") {
    Headers headers;
    headers.add("Content-Length", "8");
    done = co_await responder.begin(200, headers, "one");
    if (path == "/measured") done = co_await responder.chunk("three");
    auto ended = co_await responder.end();
    EXPECT_EQ(static_cast<bool>(ended), path == "/measured" || request.method == "HEAD");
    co_return;
  }
  if (path == "/torn") done = co_await responder.begin(200, Headers{}, "half");
  if (path == "/twice") {
    done = co_await responder.send(Response::text(200, "first"));
    auto again = co_await responder.send(Response::text(200, "second"));
    EXPECT_FALSE(again);
  }
  EXPECT_TRUE(done) << done.error().what();
}

Handler player(Seen& seen) {
  return [&seen](Request& request, Responder& responder) { return play(seen, request, responder); };
}

std::string get(std::string_view target, std::string_view more = "") {
  return cat("GET ", target, " HTTP/1.1\r\nHost: a\r\n", more, "\r\n");
}

std::string body_of(const std::string& response) { return response.substr(response.find("\r\n\r\n") + 4); }

class ServerTest : public testing::Test {
 protected:
  std::string one(std::string_view target, std::string_view more = "") { return bed_.exchange(get(target, more)); }
  Seen seen_;
  TestBed bed_{player(seen_)};
};

TEST_F(ServerTest, AnswersPipelinedRequestsInOrderOnOneConnection) {
  RawClient client(bed_.port());
  client.send(get("/hello") + "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" + get("/empty") +
              get("/hello", "Connection: close\r\n"));
  auto got = client.read_to_end();
  EXPECT_EQ(seen_.lines(), (std::vector<std::string>{"GET /hello", "POST /echo", "GET /empty", "GET /hello"}));
  auto first = got.find("hello");
  auto second = got.find("abc", first);
  auto third = got.find("204 No Content", second);
  EXPECT_NE(got.find("hello", third), std::string::npos) << got;
}

TEST_F(ServerTest, TakesARequestThatArrivesByteByByte) {
  RawClient client(bed_.port());
  for (char c :
       std::string("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n"))
    client.send(std::string_view(&c, 1));
  EXPECT_EQ(body_of(client.read_to_end()), "abc");
}

TEST_F(ServerTest, SaysTheLengthOfEveryBodyAlsoOfNone) {
  EXPECT_NE(one("/hello").find("Content-Length: 5\r\n"), std::string::npos);
  auto echoed = bed_.exchange("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  EXPECT_NE(echoed.find("Content-Length: 0\r\n"), std::string::npos) << echoed;
}

TEST_F(ServerTest, SendsNoLengthAndNoBodyWith204And304) {
  for (auto target : {"/empty", "/unchanged"}) {
    auto got = one(target);
    EXPECT_EQ(got.find("Content-Length"), std::string::npos) << got;
    EXPECT_EQ(body_of(got), "");
  }
}

TEST_F(ServerTest, AnswersHeadWithTheHeadOnly) {
  auto got = bed_.exchange("HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\nHEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n" + get("/hello"));
  EXPECT_NE(got.find("Content-Length: 5\r\n"), std::string::npos);
  EXPECT_EQ(got.find("hello"), got.size() - 5) << got;
  EXPECT_EQ(got.find("three"), std::string::npos);
}

TEST_F(ServerTest, EchoesARequestIdOrMakesOne) {
  EXPECT_NE(one("/hello", "X-Request-ID: demo-1\r\n").find("X-Request-ID: demo-1\r\n"), std::string::npos);
  EXPECT_NE(one("/throw", "X-Request-ID: demo-2\r\n").find("X-Request-ID: demo-2\r\n"), std::string::npos);
  EXPECT_NE(one("/hello", "Host: b\r\nX-Request-ID: demo-3\r\n").find("X-Request-ID: demo-3\r\n"), std::string::npos)
      << "also on a refusal";
  for (auto bad : {"a b", "a;b", "\xff", ""}) {
    auto got = one("/hello", cat("X-Request-ID: ", std::string_view(bad), "\r\n"));
    auto at = got.find("X-Request-ID: ");
    ASSERT_NE(at, std::string::npos);
    auto id = got.substr(at + 14, got.find("\r\n", at) - at - 14);
    EXPECT_EQ(id.size(), 32u);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
  }
}

TEST_F(ServerTest, StreamsInChunks) {
  EXPECT_EQ(body_of(one("/stream")), "3\r\none\r\n5\r\nthree\r\n0\r\n\r\n");
  auto old = bed_.exchange("GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_EQ(body_of(old), "onethree");
  EXPECT_EQ(old.find("chunked"), std::string::npos);
}

TEST_F(ServerTest, StreamsByLengthWhenTheHandlerKnowsIt) {
  auto got = one("/measured");
  EXPECT_NE(got.find("Content-Length: 8\r\n"), std::string::npos);
  EXPECT_EQ(body_of(got), "onethree");
  EXPECT_EQ(got.find("chunked"), std::string::npos);
  EXPECT_EQ(body_of(bed_.exchange("HEAD /short HTTP/1.1\r\nHost: a\r\n\r\n")), "");
}

TEST_F(ServerTest, CutsOffAStreamThatWasNotEnded) {
  for (auto target : {"/torn", "/short"}) {
    auto got = bed_.exchange(get(target) + get("/hello"));
    EXPECT_EQ(got.find("hello"), std::string::npos) << "nothing may follow";
    EXPECT_EQ(got.find("0\r\n\r\n"), std::string::npos);
  }
}

TEST_F(ServerTest, TurnsFailuresOfHandlersInto500WithABody) {
  for (auto target : {"/throw", "/silent", "/inject"}) {
    auto got = bed_.exchange(get(target) + get("/hello"));
    EXPECT_TRUE(got.starts_with("HTTP/1.1 500 ")) << got;
    EXPECT_NE(got.find("{\"code\":\"GENERAL::UNKNOWN_ERROR\""), std::string::npos) << got;
    EXPECT_EQ(got.find("secret"), std::string::npos);
    EXPECT_EQ(got.find("Set-Cookie"), std::string::npos);
    EXPECT_TRUE(got.ends_with("hello")) << "the connection goes on: " << got;
  }
}

TEST_F(ServerTest, SendsOnlyTheFirstOfTwoResponses) {
  auto got = one("/twice");
  EXPECT_NE(got.find("first"), std::string::npos);
  EXPECT_EQ(got.find("second"), std::string::npos);
}

TEST_F(ServerTest, ReadsAwayASmallBodyAndClosesOnALargeOne) {
  auto small = bed_.exchange("POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /" + get("/hello"));
  EXPECT_TRUE(small.ends_with("hello")) << small;
  RawClient client(bed_.port());
  client.send("POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  auto large = client.read_to_end();
  EXPECT_NE(large.find("Connection: close\r\n"), std::string::npos) << large;
  EXPECT_TRUE(large.ends_with("ignored")) << large;
}

TEST_F(ServerTest, ReadAllStopsAtItsLimit) {
  auto announced = bed_.exchange("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100001\r\n\r\n" + std::string(1000, 'x'));
  EXPECT_TRUE(announced.starts_with("HTTP/1.1 413 ")) << announced;
  std::string chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n" + std::string(100'000, 'x');
  auto exact = bed_.exchange(chunked + "\r\n0\r\n\r\n");
  EXPECT_TRUE(exact.starts_with("HTTP/1.1 200 ")) << exact.substr(0, 100);
  auto over = bed_.exchange(chunked + "\r\n1\r\nx\r\n0\r\n\r\n");
  EXPECT_TRUE(over.starts_with("HTTP/1.1 413 ")) << over.substr(0, 100);
}

TEST_F(ServerTest, AsksForABodyOnlyWhenTheHandlerWantsIt) {
  RawClient wanted(bed_.port());
  wanted.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_TRUE(wanted.read_until("100 Continue\r\n\r\n"));
  EXPECT_EQ(wanted.got(), "HTTP/1.1 100 Continue\r\n\r\n");
  wanted.send("abc" + get("/hello", "Connection: close\r\n"));
  auto got = wanted.read_to_end();
  EXPECT_NE(got.find("abc"), std::string::npos);
  EXPECT_TRUE(got.ends_with("hello")) << got;
  RawClient unwanted(bed_.port());
  unwanted.send("POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  got = unwanted.read_to_end();
  EXPECT_TRUE(got.starts_with("HTTP/1.1 200 ")) << got;
  EXPECT_NE(got.find("Connection: close"), std::string::npos);
}

TEST_F(ServerTest, KeepsServingTenThousandRequestsOnOneConnection) {
  RawClient client(bed_.port());
  std::string batch;
  for (int i = 0; i < 100; ++i) batch += get("/hello");
  for (int i = 0; i < 100; ++i) {
    client.send(batch);
    ASSERT_TRUE(client.read_until("\r\n\r\nhello", 100));
    client.forget();
  }
  EXPECT_EQ(seen_.lines().size(), 10'000u);
}

// ---- limits -----------------------------------------------------------------------------------------

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
  auto sent = co_await responder.begin(200, Headers{});
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

// ---- upgrade, disconnects, stopping ------------------------------------------------------------------

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

// ---- listening --------------------------------------------------------------------------------------

std::size_t lowest_free_descriptor() {
  Fd probe(::dup(0));
  return static_cast<std::size_t>(probe.get());
}

TEST(Server, WaitsForDescriptorsInsteadOfSpinning) {
  Seen seen;
  TestBed bed(player(seen));
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

TEST(Server, ListensOnAUnixSocketWithItsModeAndRemovesItAtTheEnd) {
  Seen seen;
  TempDir dir;
  auto path = dir.file("s");
  {
    TestBed bed(player(seen));
    ASSERT_TRUE(bed.server().listen_unix(path, 0600));
    struct stat made{};
    ASSERT_EQ(::stat(path.c_str(), &made), 0);
    EXPECT_EQ(made.st_mode & 0777u, 0600u);
    auto busy = bed.server().listen_unix(path, 0600);
    ASSERT_FALSE(busy);
    EXPECT_EQ(busy.error().kind(), Errc::conflict);
    auto got = wait_for(bed.io(), fetch(Target::unix_socket(path), request_of("GET", "/hello"), 5s, 100));
    ASSERT_TRUE(got) << got.error().what();
    EXPECT_EQ(got->body, "hello");
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST(Server, ReplacesAStaleSocketButNoOtherFile) {
  Seen seen;
  TempDir dir;
  auto stale = dir.file("s");
  {
    auto left_behind = listen_on_unix(stale, 0600);
  }
  ASSERT_EQ(::access(stale.c_str(), F_OK), 0);
  auto plain = dir.file("plain");
  {
    Fd made(::open(plain.c_str(), O_CREAT | O_WRONLY, 0600));
  }
  TestBed bed(player(seen));
  EXPECT_TRUE(bed.server().listen_unix(stale, 0666));
  auto refused = bed.server().listen_unix(plain, 0600);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), Errc::conflict);
  EXPECT_FALSE(bed.server().listen_unix(std::string(200, 'x'), 0600));
}

TEST(Server, AdoptsAListeningDescriptorOnly) {
  Seen seen;
  TempDir dir;
  auto listener = listen_on_unix(dir.file("t"), 0600);
  ASSERT_TRUE(listener);
  TestBed bed(player(seen));
  EXPECT_TRUE(bed.server().listen_fd(std::move(listener->fd)));
  auto got = wait_for(bed.io(), fetch(Target::unix_socket(dir.file("t")), request_of("GET", "/hello"), 5s, 100));
  ASSERT_TRUE(got) << got.error().what();
  EXPECT_EQ(got->body, "hello");
  EXPECT_FALSE(bed.server().listen_fd(Fd(::socket(AF_UNIX, SOCK_STREAM, 0))));
  EXPECT_FALSE(bed.server().listen_fd(Fd(::dup(0))));
}

TEST(Server, SaysWhenAPortIsTakenOrAnAddressMakesNoSense) {
  Seen seen;
  TestBed bed(player(seen));
  auto taken = bed.server().listen_tcp("127.0.0.1", bed.port());
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind(), Errc::conflict);
  EXPECT_FALSE(bed.server().listen_tcp("example.org", 0));
}

}  // namespace
}  // namespace osb::http
