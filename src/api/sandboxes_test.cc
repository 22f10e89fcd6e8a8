// Every route of a sandbox's life: status, body, headers.
#include <gmock/gmock.h>

#include "api/api_fixture.h"
#include "base/clock.h"

namespace osb::api {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

class Sandboxes : public ApiFixture {};

constexpr const char* kTime = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{6}Z";

TEST_F(Sandboxes, CreateAnswers202WithEveryFieldClientsNeed) {
  auto response = call("POST", "/v1/sandboxes", std::string(kCreateBody));
  ASSERT_EQ(response.status, 202) << response.body;
  auto sandbox = json(response);
  EXPECT_TRUE(SandboxId::parse(text(sandbox, "id")));
  EXPECT_EQ(text(sandbox.at("status").as_object(), "state"), "Running");
  EXPECT_THAT(text(sandbox.at("status").as_object(), "lastTransitionAt"), MatchesRegex(kTime));
  EXPECT_THAT(text(sandbox, "createdAt"), MatchesRegex(kTime));
  EXPECT_THAT(text(sandbox, "expiresAt"), MatchesRegex(kTime));
  EXPECT_EQ(boost::json::serialize(sandbox.at("entrypoint")), R"(["tail","-f","/dev/null"])");
  EXPECT_EQ(boost::json::serialize(sandbox.at("metadata")), R"({"team":"a"})");
  EXPECT_FALSE(sandbox.contains("image"));
  EXPECT_FALSE(sandbox.contains("platform"));
  EXPECT_THAT(std::string(response.headers.get("Content-Type")), HasSubstr("application/json"));
}

TEST_F(Sandboxes, WithoutTimeoutThereIsNoExpiry) {
  auto response =
      call("POST", "/v1/sandboxes", R"({"image":{"uri":"host"},"timeout":null,"resourceLimits":{},"entrypoint":["sleep","1"]})");
  ASSERT_EQ(response.status, 202) << response.body;
  EXPECT_FALSE(json(response).contains("expiresAt"));
  EXPECT_THAT(response.body, testing::Not(HasSubstr("null")));
}

TEST_F(Sandboxes, GetReadsTheSameTimesAsCreate) {
  auto made = json(call("POST", "/v1/sandboxes", std::string(kCreateBody)));
  for (std::string mount : {"/v1", ""}) {
    auto response = call("GET", mount + "/sandboxes/" + text(made, "id"));
    ASSERT_EQ(response.status, 200) << response.body;
    auto read = json(response);
    EXPECT_EQ(text(read, "createdAt"), text(made, "createdAt"));
    EXPECT_EQ(text(read, "expiresAt"), text(made, "expiresAt"));
    EXPECT_EQ(boost::json::serialize(read.at("image")), R"({"uri":"host"})");
    EXPECT_EQ(read.at("entrypoint"), made.at("entrypoint"));
  }
}

TEST_F(Sandboxes, DeleteAnswers204AndThenTheSandboxIsGone) {
  auto id = create();
  auto response = call("DELETE", "/v1/sandboxes/" + id);
  EXPECT_EQ(response.status, 204);
  EXPECT_TRUE(response.body.empty());
  EXPECT_FALSE(response.headers.has("Content-Length"));
  auto gone = call("GET", "/v1/sandboxes/" + id);
  EXPECT_EQ(gone.status, 404);
  EXPECT_EQ(code_of(gone), "DOCKER::SANDBOX_NOT_FOUND");
}

TEST_F(Sandboxes, PauseAndResumeAnswer202WithAnEmptyBodyOfKnownLength) {
  auto id = create();
  auto paused = call("POST", "/v1/sandboxes/" + id + "/pause");
  EXPECT_EQ(paused.status, 202);
  EXPECT_EQ(paused.headers.get("Content-Length"), "0");
  EXPECT_EQ(text(json(call("GET", "/v1/sandboxes/" + id)).at("status").as_object(), "state"), "Paused");
  auto again = call("POST", "/v1/sandboxes/" + id + "/pause");
  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(code_of(again), "DOCKER::SANDBOX_NOT_RUNNING");
  auto resumed = call("POST", "/v1/sandboxes/" + id + "/resume", "{}");
  EXPECT_EQ(resumed.status, 202);
  EXPECT_EQ(resumed.headers.get("Content-Length"), "0");
  EXPECT_EQ(text(json(call("GET", "/v1/sandboxes/" + id)).at("status").as_object(), "state"), "Running");
  auto twice = call("POST", "/v1/sandboxes/" + id + "/resume");
  EXPECT_EQ(twice.status, 409);
  EXPECT_EQ(code_of(twice), "DOCKER::SANDBOX_NOT_PAUSED");
}

TEST_F(Sandboxes, RenewSetsTheExpiryThatIsReadLater) {
  auto id = create();
  auto wanted = format_rfc3339(WallTime{wall_now().micros + 3'600'000'000});
  auto response = call("POST", "/v1/sandboxes/" + id + "/renew-expiration", R"({"expiresAt":")" + wanted + R"("})");
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(text(json(response), "expiresAt"), wanted);
  EXPECT_EQ(text(json(call("GET", "/v1/sandboxes/" + id)), "expiresAt"), wanted);
}

TEST_F(Sandboxes, RenewRefusesThePastAndWhatIsNoTime) {
  auto id = create();
  auto path = "/v1/sandboxes/" + id + "/renew-expiration";
  auto past = call("POST", path, R"({"expiresAt":"2001-01-01T00:00:00Z"})");
  EXPECT_EQ(past.status, 400);
  EXPECT_EQ(code_of(past), "DOCKER::INVALID_EXPIRATION");
  EXPECT_EQ(call("POST", path, R"({"expiresAt":"tomorrow"})").status, 422);
  EXPECT_EQ(call("POST", path, R"({"expiresAt":7})").status, 422);
  EXPECT_EQ(call("POST", path, R"({})").status, 422);
  EXPECT_EQ(call("POST", path, R"([])").status, 422);
  EXPECT_EQ(call("POST", path, R"({"expiresAt")").status, 400);
}

TEST_F(Sandboxes, MetadataIsMergedAndFoundByTheFilter) {
  auto id = create();
  for (std::string type : {"application/json", "application/merge-patch+json; charset=utf-8"}) {
    auto response = call("PATCH", "/v1/sandboxes/" + id + "/metadata", R"({"team":null,"tag":"x"})", {{"Content-Type", type}});
    ASSERT_EQ(response.status, 200) << response.body;
    EXPECT_EQ(boost::json::serialize(json(response).at("metadata")), R"({"tag":"x"})");
  }
  EXPECT_EQ(json(call("GET", "/v1/sandboxes?metadata=tag%3Dx")).at("items").as_array().size(), 1u);
  EXPECT_EQ(json(call("GET", "/v1/sandboxes?metadata=team%3Da")).at("items").as_array().size(), 0u);
  auto reserved = call("PATCH", "/v1/sandboxes/" + id + "/metadata", R"({"opensandbox.io/x":"1"})");
  EXPECT_EQ(reserved.status, 400);
  EXPECT_EQ(code_of(reserved), "INVALID_METADATA_LABEL");
}

TEST_F(Sandboxes, ListPagesNewestFirst) {
  EXPECT_EQ(call("GET", "/v1/sandboxes").body,
            R"({"items":[],"pagination":{"page":1,"pageSize":20,"totalItems":0,"totalPages":0,"hasNextPage":false}})");
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(create());
  auto first = json(call("GET", "/v1/sandboxes?page=1&pageSize=2"));
  ASSERT_EQ(first.at("items").as_array().size(), 2u);
  EXPECT_EQ(text(first.at("items").as_array()[0].as_object(), "id"), ids[2]);
  EXPECT_EQ(boost::json::serialize(first.at("pagination")), R"({"page":1,"pageSize":2,"totalItems":3,"totalPages":2,"hasNextPage":true})");
  auto last = json(call("GET", "/sandboxes?page=2&pageSize=2"));
  ASSERT_EQ(last.at("items").as_array().size(), 1u);
  EXPECT_EQ(text(last.at("items").as_array()[0].as_object(), "id"), ids[0]);
  EXPECT_EQ(json(call("GET", "/v1/sandboxes?page=9&pageSize=200")).at("items").as_array().size(), 0u);
}

TEST_F(Sandboxes, ListFiltersByStateWithoutCase) {
  auto running = create();
  auto paused = create();
  call("POST", "/v1/sandboxes/" + paused + "/pause");
  auto only = json(call("GET", "/v1/sandboxes?state=paused")).at("items").as_array();
  ASSERT_EQ(only.size(), 1u);
  EXPECT_EQ(text(only[0].as_object(), "id"), paused);
  EXPECT_EQ(json(call("GET", "/v1/sandboxes?state=Paused&state=Running")).at("items").as_array().size(), 2u);
  EXPECT_EQ(json(call("GET", "/v1/sandboxes?state=NoSuchState")).at("items").as_array().size(), 0u);
}

TEST_F(Sandboxes, AnotherKeysSandboxDoesNotExist) {
  auto id = create();
  Fields other{{"OPEN-SANDBOX-API-KEY", std::string(kOtherKey)}};
  EXPECT_EQ(bare("GET", "/v1/sandboxes/" + id, "", other).status, 404);
  EXPECT_EQ(bare("DELETE", "/v1/sandboxes/" + id, "", other).status, 404);
  EXPECT_EQ(bare("GET", "/v1/sandboxes/" + id + "/endpoints/44772", "", other).status, 404);
  EXPECT_EQ(json(bare("GET", "/v1/sandboxes", "", other)).at("items").as_array().size(), 0u);
  EXPECT_EQ(call("GET", "/v1/sandboxes/" + id).status, 200) << "the control";
  EXPECT_EQ(local("GET", "/v1/sandboxes/" + id).status, 200) << "the local door sees all";
}

TEST_F(Sandboxes, EveryRouteAnswers404ForAnUnknownId) {
  for (std::string id : {std::string(kUnknownId), std::string("nope"), std::string("..%2f..%2fetc"), std::string(5000, 'x'),
                         std::string("%ff"), std::string("--help")}) {
    std::string at = "/v1/sandboxes/" + id;
    EXPECT_EQ(call("GET", at).status, 404) << id;
    EXPECT_EQ(call("DELETE", at).status, 404) << id;
    EXPECT_EQ(call("POST", at + "/pause").status, 404) << id;
    EXPECT_EQ(call("POST", at + "/resume").status, 404) << id;
    EXPECT_EQ(call("PATCH", at + "/metadata", "{}").status, 404) << id;
    EXPECT_EQ(call("POST", at + "/renew-expiration", R"({"expiresAt":"2099-01-01T00:00:00Z"})").status, 404) << id;
    EXPECT_EQ(call("GET", at + "/endpoints/44772").status, 404) << id;
    EXPECT_EQ(call("POST", at + "/snapshots").status, 404) << id;
    EXPECT_EQ(call("GET", at + "/proxy/44772/ping").status, 404) << id;
  }
  EXPECT_EQ(call("GET", "/v1/sandboxes/nope").body, R"({"code":"DOCKER::SANDBOX_NOT_FOUND","message":"Sandbox nope not found."})");
}

TEST_F(Sandboxes, AFailureOfOursTellsRemoteClientsNothingOfTheHost) {
  runtime_.fail_next("create", Error(Errc::internal, "open /var/lib/opensandbox/disks/x: Permission denied"));
  auto response = call("POST", "/v1/sandboxes", std::string(kCreateBody));
  EXPECT_EQ(response.status, 500);
  EXPECT_THAT(response.body, testing::Not(HasSubstr("/var/lib")));
  EXPECT_NE(code_of(response), "");
  runtime_.fail_next("create", Error(Errc::internal, "open /var/lib/opensandbox/disks/x: Permission denied"));
  EXPECT_THAT(local("POST", "/v1/sandboxes", std::string(kCreateBody)).body, HasSubstr("/var/lib")) << "the operator reads why";
}

TEST_F(Sandboxes, AnUnknownImageIsNotFoundWithAHint) {
  auto response =
      call("POST", "/v1/sandboxes", R"({"image":{"uri":"no/such:1"},"resourceLimits":{},"entrypoint":["sleep","1"],"timeout":60})");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(code_of(response), "SANDBOX::IMAGE_NOT_FOUND");
  EXPECT_NE(text(json(response), "hint"), "");
}

}  // namespace
}  // namespace osb::api
