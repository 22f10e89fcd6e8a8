#include <gtest/gtest.h>

#include <atomic>

#include "http/test_bed.h"

namespace osb::http {
namespace {

using namespace std::chrono_literals;

// A server made of fixed bytes: reads until `after` has come, sends `answer`, and may hang up.
class FakeServer {
 public:
  FakeServer(std::string answer, bool hang_up, std::string after = "\r\n\r\n")
      : listener_(*listen_on_tcp("127.0.0.1", 0)), port_(local_port(listener_.fd.get())) {
    thread_ = std::thread([this, answer = std::move(answer), hang_up, after = std::move(after)] { serve(answer, hang_up, after); });
  }
  ~FakeServer() { thread_.join(); }
  Target target() const { return Target::tcp("127.0.0.1", port_); }
  std::string got() const {
    std::lock_guard lock(mutex_);
    return got_;
  }

 private:
  void serve(const std::string& answer, bool hang_up, const std::string& after) {
    pollfd waiting{listener_.fd.get(), POLLIN, 0};
    if (::poll(&waiting, 1, 20'000) != 1) return;
    Fd fd(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    read_until(fd.get(), after);
    std::string_view rest = answer;
    while (!rest.empty()) {
      auto sent = ::send(fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    if (hang_up) return;
    char byte;
    while (::recv(fd.get(), &byte, 1, 0) > 0) {
    }
  }
  void read_until(int fd, const std::string& after) {
    char byte;
    while (::recv(fd, &byte, 1, 0) == 1) {
      std::lock_guard lock(mutex_);
      got_ += byte;
      if (got_.ends_with(after)) return;
    }
  }
  Listener listener_;
  std::uint16_t port_;
  mutable std::mutex mutex_;
  std::string got_;
  std::thread thread_;
};

class Loop {
 public:
  Loop() : thread_([this] { io_.run(); }) {}
  ~Loop() {
    work_.reset();
    thread_.join();
  }
  asio::io_context& io() { return io_; }

 private:
  asio::io_context io_{1};
  asio::executor_work_guard<Executor> work_{io_.get_executor()};
  std::thread thread_;
};

class ClientTest : public testing::Test {
 protected:
  Result<ClientResponse> fetch_from(Target target, ClientRequest request = {}, std::chrono::milliseconds limit = 5s) {
    return wait_for(loop_.io(), fetch(std::move(target), std::move(request), limit, 1 << 20));
  }
  Result<ClientResponse> answered_by(std::string answer, bool hang_up = false, ClientRequest request = {}) {
    FakeServer server(std::move(answer), hang_up);
    return fetch_from(server.target(), std::move(request));
  }
  Loop loop_;
};

Task<void> mirror(Request& request, Responder& responder) {
  auto body = co_await request.body->read_all(10 << 20);
  Response response = Response::text(200, body ? *body : "failed");
  response.headers.add("X-Seen", request.method + " " + request.target + " " + std::string(request.headers.get("Host")));
  response.headers.add("X-Framing",
                       request.headers.has("Transfer-Encoding") ? "chunked" : std::string(request.headers.get("Content-Length")));
  auto sent = co_await responder.send(std::move(response));
  (void)sent;
}

Handler mirror_handler() {
  return [](Request& request, Responder& responder) { return mirror(request, responder); };
}

TEST_F(ClientTest, FetchesOverTcp) {
  TestBed bed(mirror_handler());
  auto got = fetch_from(bed.target(), request_of("POST", "/a?b=c", "hello"));
  ASSERT_TRUE(got) << got.error().what();
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->body, "hello");
  EXPECT_EQ(got->headers.get("x-seen"), cat("POST /a?b=c 127.0.0.1:", bed.port()));
  EXPECT_EQ(got->headers.get("X-Framing"), "5");
}

Task<std::string> three_on_one(Target target) {
  std::string out;
  auto connection = co_await connect(std::move(target), 5s);
  if (!connection) co_return connection.error().what();
  for (auto text : {"one", "", "three"}) {
    auto head = co_await (*connection)->start(request_of("PUT", "/", text));
    if (!head) co_return head.error().what();
    auto body = co_await (*connection)->body().read_all(100);
    if (!body) co_return body.error().what();
    out += *body + "," + std::string(head->headers.get("X-Framing")) + ((*connection)->reusable() ? ";" : "!");
  }
  co_return out;
}

TEST_F(ClientTest, UsesAConnectionAgain) {
  TestBed bed(mirror_handler());
  EXPECT_EQ(wait_for(loop_.io(), three_on_one(bed.target())), "one,3;,0;three,5;");
  EXPECT_EQ(wait_for(loop_.io(), three_on_one(Target::tcp("localhost", bed.port()))), "one,3;,0;three,5;");
}

TEST_F(ClientTest, UsesAConnectionAgainOverAUnixSocket) {
  TempDir dir;
  TestBed bed(mirror_handler());
  ASSERT_TRUE(bed.server().listen_unix(dir.file("s"), 0600));
  EXPECT_EQ(wait_for(loop_.io(), three_on_one(Target::unix_socket(dir.file("s")))), "one,3;,0;three,5;");
}

Task<std::string> over_fd(std::uint16_t port) {
  auto connection = co_await connect_fd(Fd(::socket(AF_INET, SOCK_STREAM, 0)), port, 5s);
  if (!connection) co_return connection.error().what();
  auto head = co_await (*connection)->start(request_of("GET", "/"));
  co_return head ? std::string(head->headers.get("X-Seen")) : head.error().what();
}

TEST_F(ClientTest, ConnectsASocketMadeElsewhere) {
  TestBed bed(mirror_handler());
  EXPECT_EQ(wait_for(loop_.io(), over_fd(bed.port())), cat("GET / 127.0.0.1:", bed.port()));
}

// A proxy in small: the request body goes on as it arrives, the response too.
Task<void> forward(Target target, Request& request, Responder& responder) {
  auto upstream = co_await connect(std::move(target), 5s);
  if (!upstream) co_return;
  ClientRequest onward = request_of(request.method, request.target);
  onward.body_source = request.body;
  auto head = co_await (*upstream)->start(std::move(onward));
  if (!head) {
    auto failed = co_await responder.send(Response::text(502, head.error().what()));
    (void)failed;
    co_return;
  }
  auto sent = co_await responder.begin(head->status, head->headers);
  std::string buffer(8192, 0);
  while (sent) {
    auto got = co_await (*upstream)->body().read_some(buffer);
    if (!got || *got == 0) break;
    sent = co_await responder.chunk(std::string_view(buffer).substr(0, *got));
  }
  auto ended = co_await responder.end();
  (void)ended;
}

TEST_F(ClientTest, ForwardsBodiesOfKnownAndUnknownLength) {
  TestBed back(mirror_handler());
  TestBed front([target = back.target()](Request& request, Responder& responder) { return forward(target, request, responder); });
  std::string large(3 << 20, 'x');
  auto known = wait_for(loop_.io(), fetch(front.target(), request_of("POST", "/", large), 20s, 4 << 20));
  ASSERT_TRUE(known) << known.error().what();
  EXPECT_TRUE(known->body == large);
  EXPECT_EQ(known->headers.get("X-Framing"), cat(large.size()));
  auto chunked = front.exchange("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
  EXPECT_NE(chunked.find("X-Framing: chunked\r\n"), std::string::npos) << chunked;
  EXPECT_TRUE(chunked.ends_with("hello world")) << chunked;
}

TEST_F(ClientTest, ReadsEveryKindOfBody) {
  auto length = answered_by("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  auto chunked =
      answered_by("HTTP/1.1 200 Fine by me\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nTrailer: x\r\n\r\n");
  auto until_close = answered_by("HTTP/1.1 200 OK\r\n\r\nhello", true);
  auto old = answered_by("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  for (auto* got : {&length, &chunked, &until_close, &old}) {
    ASSERT_TRUE(*got) << got->error().what();
    EXPECT_EQ((*got)->body, "hello");
  }
  EXPECT_EQ(chunked->headers.has("Trailer"), false);
  auto none = answered_by("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->body, "");
  auto head = answered_by("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, request_of("HEAD", "/"));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->headers.get("Content-Length"), "5");
}

TEST_F(ClientTest, SkipsInterimResponses) {
  auto got = answered_by(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok");
  ASSERT_TRUE(got) << got.error().what();
  EXPECT_EQ(got->status, 201);
  EXPECT_FALSE(got->headers.has("Link"));
}

TEST_F(ClientTest, RefusesResponsesThatCanBeReadInTwoWays) {
  std::string ok = "HTTP/1.1 200 OK\r\n";
  std::string many;
  for (int i = 0; i < 100; ++i) many += "HTTP/1.1 100 Continue\r\n\r\n";
  for (const auto& answer : {
           ok + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
           ok + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
           ok + "Content-Length: 5, 5\r\n\r\nhello",
           ok + "Content-Length: -5\r\n\r\nhello",
           ok + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           ok + "Transfer-Encoding: gzip\r\n\r\nhello",
           ok + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
           ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
           ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX",
           ok + "X: a\r\n b\r\n\r\n",
           ok + "X : a\r\n\r\n",
           ok + "X: a\nY: b\r\n\r\n",
           ok + "X: \x1b[2J\r\n\r\n",
           ok + "no colon\r\n\r\n",
           std::string("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
           std::string("HTTP/2.0 200 OK\r\n\r\n"),
           std::string("HTTP/1.1 2000 OK\r\n\r\n"),
           std::string("HTTP/1.1 099 OK\r\n\r\n"),
           std::string("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
           std::string("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
           std::string("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
           std::string("\r\n\r\n"),
           std::string("SSH-2.0-OpenSSH\r\n\r\n"),
           many,
           ok + "X: " + std::string(70'000, 'x') + "\r\n\r\n",
       }) {
    auto got = answered_by(answer);
    EXPECT_FALSE(got) << answer.substr(0, 100);
  }
}

TEST_F(ClientTest, SaysSoWhenAResponseIsCutOff) {
  for (const auto& answer : {"", "HTTP/1.1 200 OK\r\nContent-", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"}) {
    auto got = answered_by(answer, true);
    ASSERT_FALSE(got) << answer;
    EXPECT_EQ(got.error().kind(), Errc::unavailable) << got.error().what();
  }
}

TEST_F(ClientTest, KeepsItsDeadlineAndItsLimit) {
  FakeServer silent("", false);
  auto late = fetch_from(silent.target(), {}, 100ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind(), Errc::timeout);
  FakeServer stalling("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", false);
  late = fetch_from(stalling.target(), {}, 100ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind(), Errc::timeout);
  auto large = answered_by("HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n");
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().kind(), Errc::too_large);
}

TEST_F(ClientTest, SaysWhyItCannotConnect) {
  std::uint16_t port = 0;
  {
    port = local_port(listen_on_tcp("127.0.0.1", 0)->fd.get());
  }
  auto refused = fetch_from(Target::tcp("127.0.0.1", port));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), Errc::unavailable);
  auto missing = fetch_from(Target::unix_socket("/nonexistent/socket"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), Errc::unavailable);
  auto name = fetch_from(Target::tcp("example.org", 80));
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().kind(), Errc::invalid_argument);
}

TEST_F(ClientTest, NeverSendsARequestThatBreaksItsFraming) {
  TestBed bed(mirror_handler());
  auto injected = request_of("GET", "/");
  injected.headers.add("X", "a\r\nY: b");
  auto named = request_of("GET", "/");
  named.headers.add("X:", "a");
  for (auto& request : {injected, named, request_of("GET", "/a b"), request_of("GET", "/\r\nX: y"), request_of("G T", "/"),
                        request_of("GET", "http://b/")}) {
    auto got = fetch_from(bed.target(), request);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().kind(), Errc::invalid_argument);
  }
  auto framed = request_of("POST", "/", "hello");
  framed.headers.add("Content-Length", "1");
  framed.headers.add("Transfer-Encoding", "chunked");
  auto got = fetch_from(bed.target(), framed);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->body, "hello") << "framing fields of the caller are replaced";
}

Task<std::string> shake_hands(Target target) {
  auto connection = co_await connect(std::move(target), 5s);
  if (!connection) co_return connection.error().what();
  auto request = request_of("GET", "/");
  request.headers.add("Connection", "Upgrade");
  request.headers.add("Upgrade", "x");
  auto head = co_await (*connection)->start(std::move(request));
  if (!head) co_return head.error().what();
  char buffer[16];
  auto& stream = (*connection)->stream();
  stream.set_deadline(5s);
  auto got = co_await stream.read_some(buffer);
  co_return cat(head->status, " ", got ? std::string(buffer, *got) : got.error().what(), (*connection)->reusable() ? " reusable" : "");
}

TEST_F(ClientTest, HandsOverTheStreamAfter101WithTheBytesThatCameEarly) {
  FakeServer server("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nearly", false);
  EXPECT_EQ(wait_for(loop_.io(), shake_hands(server.target())), "101 early");
}

Task<bool> reusable_after_one(Target target) {
  auto connection = co_await connect(std::move(target), 5s);
  if (!connection) co_return true;
  auto head = co_await (*connection)->start(request_of("GET", "/"));
  if (!head) co_return true;
  auto body = co_await (*connection)->body().read_all(100);
  if (!body || *body != "ok") co_return true;
  co_return (*connection)->reusable();
}

TEST_F(ClientTest, TakesNoAnswerItDidNotAskForAsTheNextOne) {
  FakeServer poisoned("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", false);
  EXPECT_FALSE(wait_for(loop_.io(), reusable_after_one(poisoned.target())));
  FakeServer closing("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", false);
  EXPECT_FALSE(wait_for(loop_.io(), reusable_after_one(closing.target())));
  FakeServer plain("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false);
  EXPECT_TRUE(wait_for(loop_.io(), reusable_after_one(plain.target())));
}

TEST_F(ClientTest, TakesAnAnswerThatComesBeforeTheWholeRequestWasSent) {
  FakeServer early("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno", false);
  TestBed front([target = early.target()](Request& request, Responder& responder) { return forward(target, request, responder); });
  auto got = fetch_from(front.target(), request_of("POST", "/", std::string(1 << 20, 'x')), 20s);
  ASSERT_TRUE(got) << got.error().what();
  EXPECT_EQ(got->status, 413);
}

// ---- tunnel -----------------------------------------------------------------------------------------

Task<void> tunnel_to(Target target, std::chrono::milliseconds idle, Seen& seen, Responder& responder) {
  auto upstream = co_await connect(std::move(target), 5s);
  if (!upstream) co_return;
  Headers headers;
  headers.add("Upgrade", "raw");
  auto stream = co_await responder.upgrade(101, headers);
  if (!stream) co_return;
  co_await tunnel(**stream, (*upstream)->stream(), idle);
  seen.add("tunnel ended");
}

const std::string kUpgrade = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n";

TEST_F(ClientTest, TunnelsBothWaysAndPassesHalfClosesOn) {
  Seen seen;
  FakeServer back("and back", true, "there");
  TestBed front([&seen, target = back.target()](Request&, Responder& responder) { return tunnel_to(target, 10s, seen, responder); });
  RawClient client(front.port());
  client.send(kUpgrade + "there");
  client.end();
  EXPECT_TRUE(client.read_to_end().ends_with("and back"));
  while (seen.lines().empty()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(back.got(), "there");
}

TEST_F(ClientTest, EndsAnIdleTunnelButNotOneThatMovesOneWay) {
  Seen seen;
  FakeServer back("", false, "quiet");
  TestBed front([&seen, target = back.target()](Request&, Responder& responder) { return tunnel_to(target, 1s, seen, responder); });
  RawClient client(front.port());
  client.send(kUpgrade);
  for (int i = 0; i < 14; ++i) {
    client.send("x");
    std::this_thread::sleep_for(100ms);
    ASSERT_TRUE(seen.lines().empty()) << "after " << i;
  }
  client.read_to_end();
  while (seen.lines().empty()) std::this_thread::sleep_for(1ms);
}

}  // namespace
}  // namespace osb::http
