// For tests: a handler that plays every part a handler can; the path of the request says which.
#pragma once
#include <gtest/gtest.h>

#include <stdexcept>

#include "http/test_bed.h"

namespace osb::http {

inline Task<void> play(Seen& seen, Request& request, Responder& responder) {
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
    Headers none;
    done = co_await responder.begin(200, none, "one");
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
  if (path == "/torn") {
    Headers none;
    done = co_await responder.begin(200, none, "half");
  }
  if (path == "/twice") {
    done = co_await responder.send(Response::text(200, "first"));
    auto again = co_await responder.send(Response::text(200, "second"));
    EXPECT_FALSE(again);
  }
  EXPECT_TRUE(done) << done.error().what();
}

inline Handler player(Seen& seen) {
  return [&seen](Request& request, Responder& responder) { return play(seen, request, responder); };
}

inline std::string get(std::string_view target, std::string_view more = "") {
  return cat("GET ", target, " HTTP/1.1\r\nHost: a\r\n", more, "\r\n");
}

}  // namespace osb::http
