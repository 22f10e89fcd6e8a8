#include "proxy/metrics.h"

#include <gmock/gmock.h>

#include <boost/json.hpp>

#include "proxy/proxy_fixture.h"

namespace osb::proxy {
namespace {

using testing::HasSubstr;
using testing::Not;

class Metrics : public ProxyFixture {};

TEST_F(Metrics, AreAnsweredWithoutAskingTheSandbox) {
  auto answer = execd("GET", "/metrics");
  ASSERT_EQ(answer.status, 200);
  EXPECT_EQ(requests_, 0u);
  auto object = boost::json::parse(answer.body).as_object();
  EXPECT_EQ(object.at("mem_total_mib").as_double(), 512);
  EXPECT_EQ(object.at("mem_used_mib").as_double(), 1);
  EXPECT_EQ(object.at("cpu_count").as_double(), 1);
  EXPECT_GE(object.at("cpu_used_pct").as_double(), 0);
  EXPECT_LE(object.at("cpu_used_pct").as_double(), 100);
  EXPECT_GT(object.at("timestamp").as_int64(), 1'600'000'000'000);
}

TEST_F(Metrics, NeedTheTokenLikeEveryPathOfExecd) {
  EXPECT_EQ(call("GET", "/44772/metrics").status, 401);
  EXPECT_EQ(call("GET", "/44772/metrics/watch").status, 401);
}

TEST_F(Metrics, OtherMethodsAndPathsStillGoToExecd) {
  EXPECT_EQ(execd("POST", "/metrics", "x").body, "echo x");
  EXPECT_EQ(execd("GET", "/metrics/other").body, "echo ");
}

TEST_F(Metrics, AWatchSendsObjectsWithBothKindsOfNamesAndEndsWithTheSandbox) {
  std::string seen;
  auto watch = [&]() -> Task<void> {
    auto connection = co_await http::connect(front(), std::chrono::seconds(5));
    http::ClientRequest request;
    request.target = "/44772/metrics/watch";
    for (auto& [name, value] : execd_token()) request.headers.add(name, value);
    auto head = co_await (*connection)->start(std::move(request));
    EXPECT_EQ(head->status, 200);
    EXPECT_EQ(head->headers.get("Content-Type"), "text/event-stream");
    char block[4096];
    auto first = co_await (*connection)->body().read_some(block);
    seen.append(block, *first);
    runtime_.end(sandbox_, runtime::EndCause::exited, 0);
    service_->on_ended({sandbox_, runtime::EndCause::exited, 0, 0, 0});
    for (;;) {
      auto more = co_await (*connection)->body().read_some(block);
      if (!more || *more == 0) break;
      seen.append(block, *more);
    }
  };
  loop_.run(watch());
  EXPECT_THAT(seen, HasSubstr("\"cpu_used_percentage\":"));
  EXPECT_THAT(seen, HasSubstr("\"memory_total_in_mib\":512.000"));
  EXPECT_THAT(seen, HasSubstr("\"cpu_used_pct\":"));
  EXPECT_THAT(seen, HasSubstr("}\n\n{\"error\":"));
  EXPECT_TRUE(seen.ends_with("}\n\n"));
}

}  // namespace
}  // namespace osb::proxy
