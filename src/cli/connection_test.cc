#include "cli/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "cli/api.h"
#include "cli/terminal.h"
#include "cli/units.h"

namespace osb::cli {
namespace {

auto soon() { return std::chrono::steady_clock::now() + Millis(5000); }

// A connection whose other end has already said `answer`; what was asked can be read afterwards.
struct Fixture {
  Fd peer;
  Connection connection;
  explicit Fixture(std::string_view answer, bool and_close = false) : Fixture(pair(), answer, and_close) {}
  std::string asked() {
    char bytes[4096];
    auto n = ::recv(peer.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    return {bytes, n > 0 ? static_cast<std::size_t>(n) : 0};
  }

 private:
  static std::pair<int, int> pair() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    return {ends[0], ends[1]};
  }
  Fixture(std::pair<int, int> ends, std::string_view answer, bool and_close) : peer(ends.first), connection(Fd(ends.second), "here") {
    EXPECT_TRUE(write_all(peer.get(), answer));
    if (and_close) ::shutdown(peer.get(), SHUT_WR);
  }
};

TEST(Connection, AsksAndReadsAnAnswerWithALength) {
  Fixture f("HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\nX-A:  b \r\n\r\nhello");
  auto reply = f.connection.call({"POST", "/x", {{"K", "v"}}, "body"}, soon());
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 202);
  EXPECT_EQ(reply->header("x-a"), "b");
  EXPECT_EQ(reply->body, "hello");
  EXPECT_TRUE(f.connection.reusable());
  EXPECT_EQ(f.asked(), "POST /x HTTP/1.1\r\nHost: here\r\nK: v\r\nContent-Length: 4\r\n\r\nbody");
}

TEST(Connection, ReadsChunksAndGoesOnWithTheNextAnswer) {
  Fixture f(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: x\r\n\r\nHTTP/1.1 204 No "
      "Content\r\n\r\n");
  EXPECT_EQ(f.connection.call({}, soon())->body, "abc0123456789");
  EXPECT_EQ(f.connection.call({}, soon())->status, 204);
}

TEST(Connection, ReadsToTheEndWhereNothingElseIsSaid) {
  Fixture f("HTTP/1.1 200 OK\r\n\r\nto the end", true);
  EXPECT_EQ(f.connection.call({}, soon())->body, "to the end");
  EXPECT_FALSE(f.connection.reusable());
}

TEST(Connection, ReadsABodyOfAConnectionThatCloses) {
  Fixture f("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody", true);
  EXPECT_EQ(f.connection.call({}, soon())->body, "body");
  EXPECT_FALSE(f.connection.reusable());
}

TEST(Connection, KeepsBytesBehindAnUpgrade) {
  Fixture f("HTTP/1.1 101 Switching Protocols\r\nUpgrade: osb-exec/1\r\n\r\nframes");
  EXPECT_EQ(f.connection.call({"POST", "/", {}, {}}, soon())->status, 101);
  EXPECT_EQ(f.connection.take_unread(), "frames");
}

TEST(Connection, RefusesWhatIsNotHttp) {
  for (auto answer : {"SSH-2.0-x\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"}) {
    Fixture f(answer, true);
    EXPECT_FALSE(f.connection.call({}, soon())) << answer;
  }
}

TEST(Connection, NoticesACutAnswerAndASilentPeer) {
  Fixture cut("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", true);
  auto reply = cut.connection.call({}, soon());
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind(), Errc::unavailable);
  Fixture silent("");
  auto late = silent.connection.call({}, std::chrono::steady_clock::now() + Millis(10));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind(), Errc::timeout);
}

TEST(Connection, StopsWaitingWhenInterrupted) {
  Fixture f("");
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  ASSERT_EQ(::write(pipe[1], "x", 1), 1);
  f.connection.interrupted_by(pipe[0]);
  auto reply = f.connection.call({}, soon());
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().sys(), EINTR);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(Connection, SaysWhyNobodyIsThere) {
  auto nobody = Connection::open(Address{true, "/run/opensandbox/no-such/api.sock", 0}, soon());
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().sys(), ENOENT);
}

TEST(ErrorOf, CarriesTheDaemonsWords) {
  auto error = error_of({409, {}, R"({"code":"SANDBOX::CONFLICT","message":"it is paused","hint":"resume it"})"});
  EXPECT_EQ(error.kind(), Errc::conflict);
  EXPECT_EQ(error.code(), "SANDBOX::CONFLICT");
  EXPECT_EQ(error.what(), "it is paused");
  EXPECT_EQ(error.hint(), "resume it");
  EXPECT_EQ(error_of({401, {}, ""}).kind(), Errc::unauthenticated);
  EXPECT_FALSE(error_of({401, {}, ""}).hint().empty());
  EXPECT_EQ(error_of({500, {}, "<html>"}).what(), "the daemon answered 500");
}

}  // namespace
}  // namespace osb::cli
