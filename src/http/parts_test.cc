// The parts without I/O: gate, body decoder, percent coding, queries, router.
#include <gtest/gtest.h>

#include "http/body_decoder.h"
#include "http/gate.h"
#include "http/http.h"
#include "http/router.h"

namespace osb::http {
namespace {

// ---- gate -------------------------------------------------------------------------------------------

TEST(Gate, FindsTheEndOfAHeadHoweverItIsCut) {
  std::string head = "GET / HTTP/1.1\r\nHost: a\r\nX: \xe4\t y\r\n\r\n";
  std::string bytes = head + "body\r\n\r\n";
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    Gate gate(GateLimits{1000, 10, 100});
    EXPECT_FALSE(gate.scan(std::string_view(bytes).substr(0, cut)));
    if (cut < head.size()) {
      EXPECT_FALSE(gate.done());
      EXPECT_FALSE(gate.scan(bytes));
    }
    EXPECT_EQ(gate.head_bytes(), head.size());
  }
}

TEST(Gate, RefusesAtTheFirstBadByteWithoutWaitingForTheLine) {
  Gate gate(GateLimits{1000, 10, 100});
  EXPECT_TRUE(gate.scan(std::string_view("GET / HTTP/1.1\r\nX: \0", 20)));
}

TEST(Gate, MeasuresTheHeadAndNotWhatFollows) {
  std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  Gate exact(GateLimits{head.size(), 1, 14});
  EXPECT_FALSE(exact.scan(head + std::string(5000, 'x')));
  EXPECT_TRUE(exact.done());
  Gate small(GateLimits{head.size() - 1, 1, 14});
  EXPECT_EQ(small.scan(head).status, 431);
  Gate few(GateLimits{1000, 0, 100});
  EXPECT_EQ(few.scan(head).status, 431);
  Gate shorter(GateLimits{1000, 1, 13});
  EXPECT_EQ(shorter.scan(head).status, 414);
}

// ---- body decoder -----------------------------------------------------------------------------------

struct Decoded {
  std::string body;
  std::size_t consumed = 0;
  bool done = false;
  bool failed = false;
};

// Feeds `bytes` in pieces of `step` with room for `room` bytes at a time, in place when asked.
Decoded decode(Framing framing, std::string bytes, std::size_t step, std::size_t room, bool in_place) {
  BodyDecoder decoder(framing);
  Decoded out;
  while (out.consumed < bytes.size() && !decoder.done() && !decoder.failed()) {
    std::string piece = bytes.substr(out.consumed, step);
    std::string separate(room, 0);
    char* to = in_place ? piece.data() : separate.data();
    auto capacity = in_place ? piece.size() : room;
    auto result = decoder.decode(piece, to, capacity);
    out.body.append(to, result.produced);
    out.consumed += result.consumed;
  }
  out.done = decoder.done();
  out.failed = decoder.failed();
  return out;
}

TEST(BodyDecoder, ReadsChunksHoweverTheyAreCut) {
  std::string bytes = "5;name=\"value\"\r\nhello\r\n00B\r\n, wide worl\r\n1\r\nd\r\n000\r\nX: y\r\nZ: w\r\n\r\nNEXT";
  for (std::size_t step = 1; step <= bytes.size(); ++step)
    for (bool in_place : {true, false}) {
      auto got = decode({Framing::Kind::chunked, 0}, bytes, step, 3, in_place);
      EXPECT_EQ(got.body, "hello, wide world");
      EXPECT_TRUE(got.done);
      EXPECT_EQ(bytes.substr(got.consumed), "NEXT");
    }
}

TEST(BodyDecoder, ReadsExactlyItsLength) {
  auto got = decode({Framing::Kind::length, 5}, "helloNEXT", 100, 100, true);
  EXPECT_EQ(got.body, "hello");
  EXPECT_EQ(got.consumed, 5u);
  EXPECT_TRUE(got.done);
  EXPECT_TRUE(BodyDecoder(Framing{Framing::Kind::length, 0}).done());
  EXPECT_TRUE(BodyDecoder(Framing{}).done());
}

TEST(BodyDecoder, EndsWithTheConnectionOnlyWhereThatIsTheFraming) {
  BodyDecoder open(Framing{Framing::Kind::until_close, 0});
  open.end_of_stream();
  EXPECT_TRUE(open.done());
  BodyDecoder cut(Framing{Framing::Kind::length, 5});
  cut.end_of_stream();
  EXPECT_TRUE(cut.failed());
  EXPECT_TRUE(cut.truncated());
}

TEST(BodyDecoder, BoundsExtensionsAndTrailers) {
  Framing chunked{Framing::Kind::chunked, 0};
  EXPECT_TRUE(decode(chunked, "1;" + std::string(255, 'x') + "\r\na\r\n0\r\n\r\n", 99, 99, false).done);
  EXPECT_TRUE(decode(chunked, "1;" + std::string(256, 'x') + "\r\na\r\n0\r\n\r\n", 99, 99, false).failed);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "1;" + std::string(200, 'x') + "\r\na\r\n";
  EXPECT_TRUE(decode(chunked, many + "0\r\n\r\n", 99, 99, false).failed);
  EXPECT_TRUE(decode(chunked, "0\r\n" + std::string(9000, 'x') + "\r\n\r\n", 99, 99, false).failed);
}

// ---- coding -----------------------------------------------------------------------------------------

TEST(PercentCoding, DecodesOnceAndRefusesBadEscapes) {
  EXPECT_EQ(percent_decode("a%20b+c%2fd", false), "a b+c/d");
  EXPECT_EQ(percent_decode("a%20b+c", true), "a b c");
  EXPECT_EQ(percent_decode("%252e", false), "%2e");
  EXPECT_EQ(percent_decode("%C3%a4", false), "\xc3\xa4");
  for (auto bad : {"%", "%4", "%zz", "a%0", "%00", "%%30"}) EXPECT_FALSE(percent_decode(bad, false)) << bad;
}

TEST(PercentCoding, EncodesAllButUnreserved) {
  EXPECT_EQ(percent_encode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(percent_encode("a b/c?\xff\n"), "a%20b%2Fc%3F%FF%0A");
}

TEST(ParseQuery, KeepsOrderAndRepeats) {
  auto got = parse_query("a=1&b=x%20y&a=2&flag&&=v&c=a=b");
  ASSERT_TRUE(got);
  std::vector<std::pair<std::string, std::string>> expected{{"a", "1"}, {"b", "x y"}, {"a", "2"}, {"flag", ""}, {"", "v"}, {"c", "a=b"}};
  EXPECT_EQ(*got, expected);
  EXPECT_TRUE(parse_query("")->empty());
  EXPECT_FALSE(parse_query("a=%zz"));
  EXPECT_FALSE(parse_query("a%00=1"));
}

TEST(Headers, CompareNamesWithoutCase) {
  Headers headers;
  headers.add("X-A", "1");
  headers.add("x-a", "2");
  EXPECT_EQ(headers.get("X-a"), "1");
  EXPECT_EQ(headers.count("x-A"), 2u);
  headers.set("X-A", "3");
  EXPECT_EQ(headers.count("x-a"), 1u);
  headers.remove("x-a");
  EXPECT_FALSE(headers.has("X-A"));
}

// ---- router -----------------------------------------------------------------------------------------

Task<void> nothing(Request&, Responder&, const Router::Params&) { co_return; }

class RouterTest : public testing::Test {
 protected:
  RouterTest() {
    for (auto [method, pattern] : std::vector<std::pair<const char*, const char*>>{
             {"GET", "/"},
             {"GET", "/health"},
             {"POST", "/v1/sandboxes"},
             {"GET", "/v1/sandboxes"},
             {"GET", "/v1/sandboxes/{id}"},
             {"DELETE", "/v1/sandboxes/{id}"},
             {"POST", "/v1/sandboxes/{id}/pause"},
             {"GET", "/v1/sandboxes/special"},
             {"POST", "/v1/sandboxes/pool"},
             {"*", "/sandboxes/{sandbox}/proxy/{port}/{path*}"},
             {"GET", "/files/{rest*}"},
             {"GET", "/files/index"},
         })
      router_.add(method, pattern, nothing);
  }
  std::string find(std::string_view method, std::string_view path) {
    auto match = router_.find(method, path);
    if (!match.route) return match.path_known ? "405" : "404";
    std::string out = match.route->pattern;
    for (const auto& [name, value] : match.params) out += " " + name + "=" + value;
    return out;
  }
  Router router_;
};

TEST_F(RouterTest, FindsRoutesAndTheirParameters) {
  EXPECT_EQ(find("GET", "/"), "/");
  EXPECT_EQ(find("GET", "/health"), "/health");
  EXPECT_EQ(find("GET", "/v1/sandboxes/abc"), "/v1/sandboxes/{id} id=abc");
  EXPECT_EQ(find("POST", "/v1/sandboxes/abc/pause"), "/v1/sandboxes/{id}/pause id=abc");
  EXPECT_EQ(find("GET", "/v1/sand%62oxes/a%20b"), "/v1/sandboxes/{id} id=a b");
}

TEST_F(RouterTest, PrefersLiteralsButFallsBackWhereTheMethodDiffers) {
  EXPECT_EQ(find("GET", "/v1/sandboxes/special"), "/v1/sandboxes/special");
  EXPECT_EQ(find("GET", "/v1/sandboxes/pool"), "/v1/sandboxes/{id} id=pool");
  EXPECT_EQ(find("GET", "/files/index"), "/files/index");
  EXPECT_EQ(find("GET", "/files/index/more"), "/files/{rest*} rest=index/more");
}

TEST_F(RouterTest, GivesTheRestRaw) {
  EXPECT_EQ(find("PUT", "/sandboxes/x/proxy/80"), "/sandboxes/{sandbox}/proxy/{port}/{path*} path= port=80 sandbox=x");
  EXPECT_EQ(find("PUT", "/sandboxes/x/proxy/80/"), "/sandboxes/{sandbox}/proxy/{port}/{path*} path= port=80 sandbox=x");
  EXPECT_EQ(find("GET", "/sandboxes/x/proxy/80//a%2fb/../%zz"),
            "/sandboxes/{sandbox}/proxy/{port}/{path*} path=/a%2fb/../%zz port=80 sandbox=x");
}

TEST_F(RouterTest, TreatsDotsAndEncodedSlashesAsText) {
  EXPECT_EQ(find("GET", "/health/../v1/sandboxes"), "404");
  EXPECT_EQ(find("GET", "/v1/sandboxes/.."), "/v1/sandboxes/{id} id=..");
  EXPECT_EQ(find("GET", "/v1/sandboxes/..%2f..%2fetc"), "/v1/sandboxes/{id} id=../../etc");
  EXPECT_EQ(find("GET", "/v1%2fsandboxes"), "404");
  EXPECT_EQ(find("GET", "//v1/sandboxes"), "404");
  EXPECT_EQ(find("GET", "/v1/sandboxes/"), "404");
  EXPECT_EQ(find("GET", "/v1/sandboxes/a%00b"), "404");
  EXPECT_EQ(find("GET", "/v1/sandboxes/%zz"), "404");
  EXPECT_EQ(find("GET", "/healthx"), "404");
  EXPECT_EQ(find("GET", "/HEALTH"), "404");
  EXPECT_EQ(find("GET", "health"), "404");
  EXPECT_EQ(find("GET", ""), "404");
}

TEST_F(RouterTest, SaysWhichMethodsAKnownPathHas) {
  auto match = router_.find("PUT", "/v1/sandboxes");
  EXPECT_EQ(match.route, nullptr);
  EXPECT_TRUE(match.path_known);
  EXPECT_EQ(match.allowed, (std::vector<std::string>{"POST", "GET"}));
  EXPECT_EQ(find("get", "/health"), "405");
  EXPECT_EQ(find("PATCH", "/nothing"), "404");
}

}  // namespace
}  // namespace osb::http
