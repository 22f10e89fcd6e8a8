#include <gmock/gmock.h>

#include "api/api_fixture.h"

namespace osb::api {
namespace {

using testing::HasSubstr;
using testing::Not;

class Diagnostics : public ApiFixture {
 protected:
  void SetUp() override {
    ApiFixture::SetUp();
    http::Handler play = [this](http::Request& request, http::Responder& responder) { return answer(request, responder); };
    execd_ = std::make_unique<http::Server>(io_, http::Limits{}, play);
    runtime_.execd_target = http::Target::tcp("127.0.0.1", *execd_->listen_tcp("127.0.0.1", 0));
    id_ = create();
  }
  void TearDown() override {
    run(execd_->stop(std::chrono::seconds(0)));
    ApiFixture::TearDown();
  }

  Task<void> answer(http::Request& request, http::Responder& responder) {
    ++asked_;
    auto body = request.path == "/osb/v1/processes" ? processes_ : output_;
    auto response = http::Response::text(200, body);
    response.headers.add("EXECD-COMMANDS-TAIL-CURSOR", cursor_);
    [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
  }

  http::ClientResponse ask(std::string_view rest) { return call("GET", cat("/v1/sandboxes/", id_, "/diagnostics/", rest)); }
  std::string content(std::string_view rest) {
    auto reply = ask(rest);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return text(json(reply), "content");
  }

  std::unique_ptr<http::Server> execd_;
  std::string id_;
  std::string output_ = "hello\n";
  std::string cursor_ = "6";
  std::string processes_ = R"({"processes":[{"pid":7,"parent":1,"user":1000,"memoryBytes":4096,"cpuMillis":3,"command":"sleep 60"}]})";
  int asked_ = 0;
};

TEST_F(Diagnostics, LogsWithAScopeAreTheObjectClientsRead) {
  auto object = json(ask("logs?scope=container"));
  EXPECT_EQ(text(object, "sandboxId"), id_);
  EXPECT_EQ(text(object, "kind"), "logs");
  EXPECT_EQ(text(object, "scope"), "container");
  EXPECT_EQ(text(object, "delivery"), "inline");
  EXPECT_EQ(text(object, "contentType"), "text/plain; charset=utf-8");
  EXPECT_EQ(text(object, "content"), "hello\n");
  EXPECT_EQ(object.at("contentLength").as_int64(), 6);
  EXPECT_FALSE(object.at("truncated").as_bool());
  EXPECT_TRUE(object.at("warnings").as_array().empty());
}

TEST_F(Diagnostics, EveryScopeOfEveryKindIsAnswered) {
  for (const char* kind : {"logs", "events", "inspect", "summary"})
    for (const char* scope : {"all", "container", "lifecycle", "runtime", "network", "process"}) {
      auto reply = ask(cat(kind, "?scope=", scope));
      EXPECT_EQ(reply.status, 200) << kind << " " << scope;
      EXPECT_EQ(text(json(reply), "scope"), scope);
    }
  EXPECT_THAT(content("logs?scope=process"), HasSubstr("7 1 1000 4096 3 sleep 60\n"));
  EXPECT_THAT(content("events?scope=lifecycle"), HasSubstr("created CONTAINER_CREATED"));
  EXPECT_THAT(content("inspect?scope=runtime"), HasSubstr("limit.memory_bytes: 268435456\n"));
  EXPECT_THAT(content("logs?scope=all"), HasSubstr("== container ==\nhello\n"));
}

TEST_F(Diagnostics, UnknownScopesAndNumbersAreRefused) {
  for (const char* query : {"logs?scope=everything", "logs?scope=", "logs?tail=0", "logs?tail=10001", "logs?since=soon", "logs?since=0m",
                            "events?limit=501", "events?limit=-1", "summary?event_limit=x"}) {
    auto reply = ask(query);
    EXPECT_EQ(reply.status, 400) << query;
    EXPECT_EQ(code_of(reply), "SANDBOX::INVALID_PARAMETER");
  }
  EXPECT_EQ(ask("logs?tail=10&since=10m").status, 200);
  EXPECT_EQ(call("GET", cat("/v1/sandboxes/", kUnknownId, "/diagnostics/logs?scope=all")).status, 404);
}

TEST_F(Diagnostics, WithoutAScopeTheAnswerIsTheOlderText) {
  output_ = "one\ntwo\nthree\n";
  auto reply = ask("logs?tail=2");
  EXPECT_EQ(reply.body, "two\nthree\n");
  EXPECT_EQ(reply.headers.get("Deprecation"), "true");
  EXPECT_THAT(std::string(reply.headers.get("Content-Type")), HasSubstr("text/plain"));
  EXPECT_THAT(ask("events?limit=1").body, Not(HasSubstr("created")));
  EXPECT_THAT(ask("inspect").body, HasSubstr("state: Running\n"));
  EXPECT_THAT(ask("summary").body, HasSubstr("three\n"));
}

TEST_F(Diagnostics, WhatASandboxSaysIsHarmlessAndBounded) {
  output_ = "\x1b]0;owned\x07 \xff\xfe\n";
  EXPECT_EQ(content("logs?scope=container"), "\xEF\xBF\xBD]0;owned\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD\n");
  output_ = std::string(600 * 1024, 'x');
  auto object = json(ask("logs?scope=container"));
  EXPECT_LE(text(object, "content").size(), 256u * 1024 + 1);
  EXPECT_TRUE(object.at("truncated").as_bool());
  processes_ = R"({"processes":[{"pid":"x","command":["a"]},5]})";
  EXPECT_EQ(ask("logs?scope=process").status, 200);
  processes_ = "rubbish";
  EXPECT_EQ(json(ask("logs?scope=process")).at("warnings").as_array().size(), 1u);
}

TEST_F(Diagnostics, OutputThatExecdNoLongerHasIsToldAsTruncated) {
  cursor_ = "100000";
  EXPECT_TRUE(json(ask("logs?scope=container")).at("truncated").as_bool());
}

TEST_F(Diagnostics, APausedOrEndedSandboxIsNotAsked) {
  ASSERT_EQ(call("POST", "/v1/sandboxes/" + id_ + "/pause").status, 202);
  auto paused = json(ask("logs?scope=all"));
  EXPECT_THAT(text(paused, "content"), HasSubstr("cannot be read while the sandbox is paused"));
  EXPECT_THAT(content("events?scope=container"), HasSubstr(" paused CONTAINER_PAUSED"));
  runtime_.end(*SandboxId::parse(id_), runtime::EndCause::out_of_memory, 9);
  EXPECT_THAT(content("logs?scope=container"), HasSubstr("is not kept"));
  EXPECT_THAT(content("events?scope=lifecycle"), HasSubstr(" oom_killed OOMKilled"));
  EXPECT_THAT(content("summary?scope=all"), HasSubstr("state: Failed\n"));
  EXPECT_EQ(asked_, 0);
}

}  // namespace
}  // namespace osb::api
