// What wrong requests get: a status, a code and a sentence, never an empty body, never anything of the host.
#include <gmock/gmock.h>

#include "api/api_fixture.h"

namespace osb::api {
namespace {

using testing::HasSubstr;
using testing::Not;

class BadInput : public ApiFixture {
 protected:
  void expect_told(const http::ClientResponse& response, int status) {
    EXPECT_EQ(response.status, status) << response.body;
    auto body = json(response);
    EXPECT_NE(text(body, "code"), "");
    EXPECT_NE(text(body, "message"), "");
    EXPECT_THAT(response.body, Not(testing::AnyOf(HasSubstr("/tmp/"), HasSubstr("/var/"), HasSubstr("/run/"), HasSubstr("127.0.0.1"))));
    EXPECT_TRUE(response.headers.has("X-Request-ID"));
  }
};

TEST_F(BadInput, BodiesThatAreNotTheJsonWeTake) {
  std::string deep(100'000, '[');
  for (const std::string& body : {std::string("{"), std::string("{\"image\":"), deep, std::string("\xEF\xBB\xBF{}"),
                                  std::string(R"({"a":NaN})"), std::string(R"({"a":1e999})"), std::string(R"({} x)"),
                                  std::string("{\"a\":\"\xff\"}"), std::string(R"({"a":"\ud800"})"), std::string(R"({"a":1,"a":2})")})
    expect_told(call("POST", "/v1/sandboxes", body), 400);
  for (const std::string& body : {std::string("[]"), std::string("\"x\""), std::string("null"), std::string("{}")})
    expect_told(call("POST", "/v1/sandboxes", body), 422);
  EXPECT_EQ(store_.rows.size(), 0u);
  EXPECT_EQ(runtime_.calls.size(), 1u) << "only the list at start";
}

TEST_F(BadInput, ABodyPastTheLimitIsRefusedBeforeItIsRead) {
  auto connection = run(http::connect(tcp(), std::chrono::seconds(5)));
  ASSERT_TRUE(connection);
  std::string head =
      "POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nOPEN-SANDBOX-API-KEY: correct-horse\r\nContent-Type: application/json\r\n"
      "Content-Length: 2147483648\r\n\r\n{";
  ASSERT_TRUE(run((*connection)->stream().write_all(head)));
  char answer[4096];
  auto read = run((*connection)->stream().read_some(answer));
  ASSERT_TRUE(read);
  EXPECT_THAT(std::string(answer, *read), testing::StartsWith("HTTP/1.1 413"));
}

TEST_F(BadInput, AWrongContentTypeIs415) {
  auto id = create();
  for (std::string type : {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""}) {
    expect_told(call("POST", "/v1/sandboxes", std::string(kCreateBody), {{"Content-Type", type}}), 415);
    expect_told(call("PATCH", "/v1/sandboxes/" + id + "/metadata", "{}", {{"Content-Type", type}}), 415);
  }
  EXPECT_EQ(call("POST", "/v1/sandboxes", std::string(kCreateBody), {{"Content-Type", "application/json; charset=utf-8"}}).status, 202);
}

TEST_F(BadInput, AWrongMethodIs405AndSaysWhichOnesThereAre) {
  auto response = call("PUT", "/v1/sandboxes");
  expect_told(response, 405);
  EXPECT_THAT(std::string(response.headers.get("Allow")), testing::AllOf(HasSubstr("GET"), HasSubstr("POST")));
  expect_told(call("POST", "/health"), 405);
  expect_told(call("GET", "/v1/sandboxes/x/pause"), 405);
  expect_told(call("get", "/v1/sandboxes"), 405);
}

TEST_F(BadInput, AnUnknownPathIs404InJson) {
  for (std::string path : {"/v1/nope", "/", "/v1", "/v1/sandboxes/", "/v1/sandboxes/x/y/z"}) expect_told(call("GET", path), 404);
}

TEST_F(BadInput, PagingOutOfRangeIs422) {
  for (std::string query : {"page=0", "page=-1", "page=x", "page=", "page=1.5", "page=99999999999999999999", "pageSize=0", "pageSize=201",
                            "pageSize=-5", "pageSize=1e3", "pageSize=%20"}) {
    expect_told(call("GET", "/v1/sandboxes?" + query), 422);
    expect_told(call("GET", "/v1/snapshots?" + query), 422);
  }
  EXPECT_EQ(call("GET", "/v1/sandboxes?page=1&pageSize=200&unknown=1").status, 200);
}

TEST_F(BadInput, MetadataFiltersThatAreNotPairsAre400) {
  for (std::string query : {"metadata=oops", "metadata=a%3D1%26b", "metadata=%3Dx", "metadata=a%3D%25zz"}) {
    auto response = call("GET", "/v1/sandboxes?" + query);
    expect_told(response, 400);
    EXPECT_EQ(code_of(response), "INVALID_METADATA_FORMAT") << query;
  }
  EXPECT_EQ(call("GET", "/v1/sandboxes?metadata=").status, 200);
  EXPECT_EQ(call("GET", "/v1/sandboxes?metadata=a%3D1%26b%3D").status, 200);
  expect_told(call("GET", "/v1/sandboxes?state=%zz"), 400);
}

TEST_F(BadInput, TwiceEncodedFiltersAndPlusForSpaceAreUnderstood) {
  create(R"({"image":{"uri":"host"},"timeout":60,"resourceLimits":{},"entrypoint":["sleep","1"],"metadata":{"a.b/c":"x.y"}})");
  EXPECT_EQ(json(call("GET", "/v1/sandboxes?metadata=a.b%252Fc%3Dx.y")).at("items").as_array().size(), 1u);
  EXPECT_EQ(json(call("GET", "/v1/sandboxes?metadata=a.b%2Fc%3Dx.y")).at("items").as_array().size(), 1u);
  EXPECT_EQ(json(call("GET", "/v1/sandboxes?metadata=a.b%2Fc%3Dx%2By")).at("items").as_array().size(), 0u);
  EXPECT_EQ(json(call("GET", "/v1/sandboxes?metadata=a.b%2Fc%3Dx.y%26a.b%2Fc%3Dz")).at("items").as_array().size(), 0u);
}

TEST_F(BadInput, ARequestIdIsEchoedOnEveryAnswerOrReplacedWhenItIsUnfit) {
  for (std::string path : {"/v1/sandboxes", "/v1/sandboxes/nope/endpoints/44772", "/nowhere"})
    EXPECT_EQ(call("GET", path, "", {{"X-Request-ID", "demo-1"}}).headers.get("X-Request-ID"), "demo-1") << path;
  EXPECT_EQ(bare("GET", "/v1/sandboxes", "", {{"X-Request-ID", "demo-2"}}).headers.get("X-Request-ID"), "demo-2") << "also on 401";
  for (std::string unfit : {"a b", "a;b", "a\tb", "<script>"}) {
    auto response = call("GET", "/v1/sandboxes", "", {{"X-Request-ID", unfit}});
    EXPECT_THAT(std::string(response.headers.get("X-Request-ID")), testing::MatchesRegex("[0-9a-f]{32}")) << unfit;
  }
}

TEST_F(BadInput, AHostileCreateIsRefusedAndNothingIsMade) {
  for (const std::string& member :
       {std::string(R"("entrypoint":[])"), std::string(R"("entrypoint":["\u0000"])"), std::string(R"("env":{"A\u0000B":"x"})"),
        std::string(R"("metadata":{"opensandbox.io/x":"1"})"), std::string(R"("timeout":59)"), std::string(R"("timeout":-1)"),
        std::string(R"("timeout":9223372036854775808)"), std::string(R"("resourceLimits":{"memory":"-1"})"),
        std::string(R"("resourceLimits":{"cpu":"NaN"})"), std::string(R"("extensions":{"poolRef":"p"})")}) {
    std::string body = R"({"image":{"uri":"host"},)" + member;
    for (std::string_view needed : {R"("entrypoint":["sleep","1"])", R"("resourceLimits":{})", R"("timeout":60)"})
      if (member.substr(0, member.find(':')) != needed.substr(0, needed.find(':'))) body += "," + std::string(needed);
    auto response = call("POST", "/v1/sandboxes", body + "}");
    EXPECT_TRUE(response.status == 400 || response.status == 422) << member << " " << response.status << response.body;
    EXPECT_NE(code_of(response), "") << member;
  }
  EXPECT_EQ(store_.rows.size(), 0u);
}

TEST_F(BadInput, WhatIsNotServedYetSaysSoWithTheKnownCode) {
  auto expect = [&](std::string method, std::string path, const std::string& code) {
    auto response = call(method, path);
    expect_told(response, 501);
    EXPECT_EQ(code_of(response), code) << method << " " << path;
  };
  for (std::string method : {"GET", "POST"}) expect(method, "/v1/pools", "KUBERNETES::POOL_NOT_SUPPORTED");
  for (std::string method : {"GET", "PUT", "DELETE"}) expect(method, "/v1/pools/p", "KUBERNETES::POOL_NOT_SUPPORTED");
  for (std::string method : {"GET", "DELETE"}) EXPECT_EQ(code_of(call(method, "/v1/snapshots/x")), "SNAPSHOT::NOT_FOUND");
  EXPECT_EQ(call("GET", "/v1/snapshots").body,
            R"({"items":[],"pagination":{"page":1,"pageSize":20,"totalItems":0,"totalPages":0,"hasNextPage":false}})");
}

}  // namespace
}  // namespace osb::api
