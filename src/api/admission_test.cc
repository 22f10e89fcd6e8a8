// When much is asked: what is refused says so with a status, a code, a time and a fix.
#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>

#include "api/api_fixture.h"
#include "api/request_count.h"
#include "base/text.h"

namespace osb::api {
namespace {

using testing::HasSubstr;

class Admission : public ApiFixture {
 protected:
  void expect_refused(const http::ClientResponse& response, int status, std::string_view code) {
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_EQ(code_of(response), code);
    auto seconds = parse_int<int>(response.headers.get("Retry-After"));
    ASSERT_TRUE(seconds) << "Retry-After: " << response.headers.get("Retry-After");
    EXPECT_GE(*seconds, 1);
    EXPECT_FALSE(text(json(response), "message").empty());
  }
  Task<void> hold_create(bool* answered) {
    http::ClientRequest request;
    request.method = "POST";
    request.target = "/v1/sandboxes";
    request.headers.add("OPEN-SANDBOX-API-KEY", std::string(kTestKey));
    request.headers.add("Content-Type", "application/json");
    request.body = kCreateBody;
    auto response = co_await http::fetch(tcp(), std::move(request), std::chrono::seconds(10), 1 << 20);
    *answered = response && response->status == 202;
  }
  http::ClientResponse create_as(std::string_view key) {
    return bare("POST", "/v1/sandboxes", std::string(kCreateBody), {{"OPEN-SANDBOX-API-KEY", std::string(key)}});
  }
};

TEST_F(Admission, AFullServerAnswers503WithATime) {
  lifecycle::Options options;
  options.max_sandboxes = 1;
  service_->set_options(options);
  auto id = create();
  auto refused = create_as(kOtherKey);
  expect_refused(refused, 503, "SANDBOX::LIMIT_REACHED");
  EXPECT_THAT(refused.body, HasSubstr("maximum of 1 sandboxes")) << "no fixed sentence: it is for the client";
  EXPECT_EQ(call("DELETE", "/v1/sandboxes/" + id).status, 204);
  EXPECT_EQ(create_as(kOtherKey).status, 202);
}

TEST_F(Admission, AKeyAtItsBoundAnswers429AndOthersGoOn) {
  lifecycle::Options options;
  options.admission.sandboxes_per_key = 1;
  service_->set_options(options);
  EXPECT_EQ(create_as(kOtherKey).status, 202);
  expect_refused(create_as(kOtherKey), 429, "SANDBOX::KEY_LIMIT_REACHED");
  EXPECT_EQ(create_as(kTestKey).status, 202);
}

TEST_F(Admission, WhatTheRuntimeRunsOutOfIs503) {
  runtime_.fail_next("create", Error(Errc::exhausted, "step clone failed: Resource temporarily unavailable"));
  expect_refused(create_as(kTestKey), 503, "SANDBOX::HOST_EXHAUSTED");
  EXPECT_EQ(create_as(kTestKey).status, 202);
}

TEST_F(Admission, AFailureOfOursStaysOursAndHasATimeToo) {
  runtime_.fail_next("create", Error(Errc::unavailable, "/run/opensandbox/default/launch.sock: gone"));
  auto refused = create_as(kTestKey);
  expect_refused(refused, 503, "DOCKER::SANDBOX_START_FAILED");
  EXPECT_THAT(refused.body, testing::Not(HasSubstr("/run/")));
}

TEST_F(Admission, OneKeyCannotHoldEveryRequest) {
  api_->set_max_requests_per_key(1);
  runtime_.hold("create");
  bool answered = false;
  asio::co_spawn(io_, hold_create(&answered), [](std::exception_ptr) {});
  loop_.turn_until([&] { return runtime_.waiting("create") == 1; });
  expect_refused(call("GET", "/v1/sandboxes"), 429, "GENERAL::TOO_MANY_REQUESTS");
  EXPECT_EQ(bare("GET", "/v1/sandboxes", "", {{"OPEN-SANDBOX-API-KEY", std::string(kOtherKey)}}).status, 200);
  EXPECT_EQ(local("GET", "/v1/sandboxes").status, 200);
  runtime_.release("create");
  loop_.turn_until([&] { return answered; });
  EXPECT_EQ(call("GET", "/v1/sandboxes").status, 200);
}

TEST_F(Admission, WhatGoesToASandboxCountsForTheKeyThatMadeIt) {
  auto id = create();
  EXPECT_EQ(service_->owner_of(id), "default");
  EXPECT_EQ(service_->owner_of(kUnknownId), "");
  RequestCount count(2);
  {
    auto first = count.enter("a");
    auto second = count.enter("a");
    auto third = count.enter("a");
    EXPECT_TRUE(first && second && !third);
    EXPECT_TRUE(count.enter("b"));
    EXPECT_EQ(count.of("a"), 2u);
  }
  EXPECT_EQ(count.of("a"), 0u);
}

}  // namespace
}  // namespace osb::api
