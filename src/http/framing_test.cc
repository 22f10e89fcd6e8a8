// Messages that two programs could read differently: each is refused, and what follows it on the connection never runs.
#include <gtest/gtest.h>

#include "http/test_bed.h"

namespace osb::http {
namespace {

struct Vector {
  const char* name;
  std::string bytes;
  const char* status = "400";
};

std::string with_nul(std::string text) {
  for (auto& c : text)
    if (c == '@') c = '\0';
  return text;
}

std::vector<Vector> refused() {
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n";
  const std::string chunked_end = "0\r\n\r\n";
  return {
      {"CL and TE", post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked_end},
      {"TE and CL", post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + chunked_end},
      {"CL twice, different", post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"},
      {"CL twice, same", post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"},
      {"CL list", post + "Content-Length: 3, 3\r\n\r\nabc"},
      {"CL with plus", post + "Content-Length: +5\r\n\r\nhello"},
      {"CL negative", post + "Content-Length: -1\r\n\r\nhello"},
      {"CL hex", post + "Content-Length: 0x5\r\n\r\nhello"},
      {"CL empty", post + "Content-Length:\r\n\r\nhello"},
      {"CL overflow", post + "Content-Length: 99999999999999999999999\r\n\r\n"},
      {"CL 2^64+5", post + "Content-Length: 18446744073709551621\r\n\r\nhello"},
      {"TE chunked, identity", post + "Transfer-Encoding: chunked, identity\r\n\r\n" + chunked_end},
      {"TE identity", post + "Transfer-Encoding: identity\r\n\r\n" + chunked_end},
      {"TE gzip, chunked", post + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunked_end},
      {"TE xchunked", post + "Transfer-Encoding: xchunked\r\n\r\n" + chunked_end},
      {"TE quoted", post + "Transfer-Encoding: \"chunked\"\r\n\r\n" + chunked_end},
      {"TE twice", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked_end},
      {"TE twice, TE.TE", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n" + chunked_end},
      {"TE cow first", post + "Transfer-Encoding: cow\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked_end},
      {"TE empty", post + "Transfer-Encoding:\r\n\r\n" + chunked_end},
      {"TE with vertical tab", post + "Transfer-Encoding:\vchunked\r\n\r\n" + chunked_end},
      {"TE with form feed after", post + "Transfer-Encoding: chunked\f\r\n\r\n" + chunked_end},
      {"TE in HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked_end},
      {"space before colon", post + "Transfer-Encoding : chunked\r\n\r\n" + chunked_end},
      {"tab before colon", post + "Content-Length\t: 5\r\n\r\nhello"},
      {"space before first name", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
      {"obs-fold", get + "X: a\r\n b\r\n\r\n"},
      {"obs-fold tab", post + "Transfer-Encoding:\r\n\tchunked\r\n\r\n" + chunked_end},
      {"bare LF lines", "GET / HTTP/1.1\nHost: a\n\n"},
      {"bare LF in head", get + "X: a\nContent-Length: 5\r\n\r\n"},
      {"bare LF at the end", get + "X: a\r\n\n"},
      {"bare CR in value", get + "X: a\rb\r\n\r\n"},
      {"bare CR in name", get + "X\rY: a\r\n\r\n"},
      {"NUL in value", with_nul(get + "X: a@b\r\n\r\n")},
      {"NUL in name", with_nul(get + "X@: ab\r\n\r\n")},
      {"NUL in target", with_nul("GET /@ HTTP/1.1\r\nHost: a\r\n\r\n")},
      {"DEL in value", get + "X: a\x7f\r\n\r\n"},
      {"escape in value", get + "X: \x1b[2J\r\n\r\n"},
      {"no colon", get + "Nonsense\r\n\r\n"},
      {"empty name", get + ": value\r\n\r\n"},
      {"name not a token", get + "X(y): value\r\n\r\n"},
      {"no Host", "GET / HTTP/1.1\r\n\r\n"},
      {"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"},
      {"two Hosts in 1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"},
      {"Host with slash", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
      {"Host with at", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"},
      {"HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
      {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n"},
      {"HTTP/0.9", "GET /\r\n\r\n"},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
      {"lowercase version", "GET / http/1.1\r\nHost: a\r\n\r\n"},
      {"absolute-form", "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"authority-form", "CONNECT b:443 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"asterisk-form", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"target without slash", "GET path HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"space in target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"tab in request line", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"fragment in target", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"upper half in target", "GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"trailing space in request line", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
      {"method not a token", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"long method", std::string(64, 'G') + " / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"empty line first", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"TLS hello", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)},
      {"unknown expectation", get + "Expect: a-miracle\r\n\r\n", "417"},
      // Refused while the handler reads the body; the connection ends all the same.
      {"chunk size overflow", post + "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nx"},
      {"chunk size 0x5", post + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n"},
      {"chunk size with space", post + "Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n"},
      {"chunk size with sign", post + "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n"},
      {"chunk size empty", post + "Transfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n"},
      {"chunk bare LF", post + "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n"},
      {"chunk data too long", post + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello!!\r\n0\r\n\r\n"},
      {"chunk data ends with LF", post + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n"},
      {"chunk extension 20 kB", post + "Transfer-Encoding: chunked\r\n\r\n5;" + std::string(20'000, 'x') + "\r\nhello\r\n0\r\n\r\n"},
      {"chunk extension with LF", post + "Transfer-Encoding: chunked\r\n\r\n5;a\nb\r\nhello\r\n0\r\n\r\n"},
      {"trailers without end", post + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + std::string(20'000, 'X') + ": y\r\n\r\n"},
      {"trailer with bare LF", post + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\n\r\n\r\n"},
  };
}

Task<void> read_and_answer(Seen& seen, Request& request, Responder& responder) {
  auto body = co_await request.body->read_all(1 << 20);
  if (!body) {
    auto bad = co_await responder.send(Response::json(400, "{\"code\":\"BAD_BODY\",\"message\":\"" + body.error().what() + "\"}"));
    EXPECT_TRUE(bad);
    co_return;
  }
  seen.add(request.method + " " + request.target + " " + *body);
  auto sent = co_await responder.send(Response::text(200, "you said " + *body));
  (void)sent;
}

class Framing : public testing::Test {
 protected:
  Seen seen_;
  TestBed bed_{[this](Request& request, Responder& responder) { return read_and_answer(seen_, request, responder); }};
};

TEST_F(Framing, RefusesWhatCanBeReadInTwoWaysAndNeverRunsWhatFollows) {
  for (const auto& vector : refused()) {
    SCOPED_TRACE(vector.name);
    auto got = bed_.exchange(vector.bytes + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(got.starts_with(cat("HTTP/1.1 ", std::string_view(vector.status), " "))) << got;
    EXPECT_NE(got.find("Connection: close\r\n"), std::string::npos) << got;
    EXPECT_NE(got.find("X-Request-ID: "), std::string::npos) << got;
    EXPECT_NE(got.find("\"code\":"), std::string::npos) << got;
    EXPECT_EQ(got.find("HTTP/1.1 ", 1), std::string::npos) << "a second response: " << got;
    EXPECT_EQ(got.find("(timeout)"), std::string::npos);
  }
  EXPECT_TRUE(seen_.lines().empty());
}

TEST_F(Framing, RunsThePlainFormsOfTheSameMessages) {
  auto got = bed_.exchange(
      "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
      "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n5;x=y\r\nhello\r\n06\r\n world\r\n0\r\nX-Auth: me\r\n\r\n"
      "GET /c?q HTTP/1.1\r\nhost:a\r\nX:\t\r\n\r\n"
      "POST /d HTTP/1.0\r\nContent-Length: 0002\r\n\r\nhi"
      "GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(seen_.lines(), (std::vector<std::string>{"POST /a hello", "POST /b hello world", "GET /c?q ", "POST /d hi"})) << got;
}

TEST_F(Framing, TrailersNeverBecomeHeaders) {
  std::string after;
  TestBed bed([&after](Request& request, Responder& responder) -> Task<void> {
    struct Local {
      static Task<void> run(std::string& out, Request& q, Responder& r) {
        auto body = co_await q.body->read_all(100);
        out = std::string(q.headers.get("X-Auth"));
        auto sent = co_await r.send(Response::text(200, body ? *body : "failed"));
        (void)sent;
      }
    };
    return Local::run(after, request, responder);
  });
  auto got = bed.exchange("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\nX-Auth: root\r\n\r\n");
  EXPECT_TRUE(got.starts_with("HTTP/1.1 200 ")) << got;
  EXPECT_EQ(after, "");
}

}  // namespace
}  // namespace osb::http
