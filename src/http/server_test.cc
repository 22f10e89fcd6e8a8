
#include "http/test_player.h"

namespace osb::http {
namespace {

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
    EXPECT_EQ(got.find("\r\n0\r\n\r\n"), std::string::npos);
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

}  // namespace
}  // namespace osb::http
