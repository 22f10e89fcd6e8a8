#include "api/api_fixture.h"

namespace osb::api {
namespace {

class Stats : public ApiFixture {};

TEST_F(Stats, TellEveryNumberOfASandbox) {
  auto id = create();
  auto answer = call("GET", "/v1/sandboxes/" + id + "/stats");
  ASSERT_EQ(answer.status, 200) << answer.body;
  auto object = boost::json::parse(answer.body).as_object();
  EXPECT_EQ(object.at("id").as_string(), id);
  EXPECT_EQ(object.at("memory").at("limitBytes").as_int64(), 256 << 20);
  EXPECT_EQ(object.at("memory").at("usedBytes").as_int64(), 1 << 20);
  EXPECT_EQ(object.at("cpu").at("limitMillis").as_int64(), 1000);
  EXPECT_EQ(object.at("cpu").at("usedNanos").as_int64(), 1'000'000);
  EXPECT_EQ(object.at("pids").at("current").as_int64(), 1);
  EXPECT_EQ(object.at("network").at("sentBytes").as_int64(), 0);
}

TEST_F(Stats, AreThoseOfTheCallersSandboxesOnly) {
  auto id = create();
  EXPECT_EQ(bare("GET", "/v1/sandboxes/" + id + "/stats", {}, {{"OPEN-SANDBOX-API-KEY", std::string(kOtherKey)}}).status, 404);
  EXPECT_EQ(call("GET", "/v1/sandboxes/" + std::string(kUnknownId) + "/stats").status, 404);
}

TEST_F(Stats, OfASandboxThatEndedAreAConflict) {
  auto id = create();
  runtime_.end(*SandboxId::parse(id), runtime::EndCause::exited, 0);
  auto answer = call("GET", "/v1/sandboxes/" + id + "/stats");
  EXPECT_EQ(answer.status, 409);
  EXPECT_NE(answer.body.find("SANDBOX_NOT_RUNNING"), std::string::npos);
}

}  // namespace
}  // namespace osb::api
