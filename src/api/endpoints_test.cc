// Endpoint answers, images, and what the server says of itself.
#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>

#include "api/api_fixture.h"
#include "base/sha256.h"

namespace osb::api {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class Endpoints : public ApiFixture {
 protected:
  std::string at(const std::string& id, const std::string& rest) { return "/v1/sandboxes/" + id + "/endpoints/" + rest; }
};

TEST_F(Endpoints, ArePathShapedAndCarryTheTokenOfTheirPort) {
  auto id = create();
  for (std::string mode : {"", "?use_server_proxy=true", "?use_server_proxy=false", "?use_server_proxy=True", "?use_server_proxy=0"}) {
    auto execd = json(call("GET", at(id, "44772") + mode));
    EXPECT_EQ(text(execd, "endpoint"), cat("127.0.0.1:", port_, "/sandboxes/", id, "/proxy/44772"));
    EXPECT_EQ(text(execd.at("headers").as_object(), "X-EXECD-ACCESS-TOKEN"), proxy_->tokens().execd(*SandboxId::parse(id)));
    auto egress = json(call("GET", at(id, "18080") + mode));
    EXPECT_EQ(text(egress.at("headers").as_object(), "OPENSANDBOX-EGRESS-AUTH"), proxy_->tokens().egress(*SandboxId::parse(id)));
    EXPECT_FALSE(json(call("GET", at(id, "8080") + mode)).contains("headers"));
  }
}

TEST_F(Endpoints, TokensDifferBetweenSandboxesAndPurposes) {
  auto a = *SandboxId::parse(create()), b = *SandboxId::parse(create());
  const auto& tokens = proxy_->tokens();
  EXPECT_EQ(tokens.execd(a).size(), 64u);
  EXPECT_NE(tokens.execd(a), tokens.execd(b));
  EXPECT_NE(tokens.execd(a), tokens.egress(a));
  EXPECT_NE(tokens.execd(a), tokens.access(a));
  EXPECT_EQ(tokens.execd(a), proxy::Tokens("secret").execd(a)) << "the same after a restart";
  for (const std::string& secret : {std::string("secret"), std::string(64, 's'), std::string(65, 's')})
    EXPECT_EQ(proxy::Tokens(secret).execd(a), hmac_sha256_hex(secret, {"execd:", a.text()})) << "HMAC-SHA256, written twice";
}

TEST_F(Endpoints, SecureAccessAddsItsTokenToEveryPort) {
  auto id = create(R"({"image":{"uri":"host"},"timeout":60,"resourceLimits":{},"entrypoint":["sleep","1"],"secureAccess":true})");
  auto token = proxy_->tokens().access(*SandboxId::parse(id));
  for (std::string port : {"44772", "8080", "18080"})
    EXPECT_EQ(text(json(call("GET", at(id, port))).at("headers").as_object(), "OpenSandbox-Secure-Access"), token) << port;
}

TEST_F(Endpoints, FollowTheHostOfTheRequest) {
  auto id = create();
  EXPECT_THAT(text(json(call("GET", at(id, "80"), "", {{"Host", "gw.example:9"}})), "endpoint"),
              testing::StartsWith("gw.example:9/sandboxes/"));
  EXPECT_THAT(text(json(local("GET", at(id, "80"))), "endpoint"), testing::StartsWith("127.0.0.1:8080/sandboxes/"))
      << "through the local door: where TCP listens";
}

TEST_F(Endpoints, RefuseWhatTheyCannotMean) {
  auto id = create();
  for (std::string port : {"0", "65536", "-1", "99999"}) {
    auto response = call("GET", at(id, port));
    EXPECT_EQ(response.status, 400) << port;
    EXPECT_EQ(code_of(response), "DOCKER::INVALID_PORT") << port;
  }
  EXPECT_EQ(call("GET", at(id, "http")).status, 422);
  auto is_signed = call("GET", at(id, "80") + "?expires=4102444800");
  EXPECT_EQ(is_signed.status, 400);
  EXPECT_EQ(code_of(is_signed), "SANDBOX::API_NOT_SUPPORTED");
  auto both = call("GET", at(id, "80") + "?expires=4102444800&use_server_proxy=true");
  EXPECT_EQ(both.status, 400);
  EXPECT_EQ(code_of(both), "SANDBOX::INVALID_PARAMETER");
  EXPECT_EQ(call("GET", at(id, "80") + "?expires=soon").status, 422);
  EXPECT_EQ(call("GET", at(id, "80") + "?use_server_proxy=maybe").status, 422);
}

class About : public ApiFixture {};

TEST_F(About, HealthVersionDocsAndTheOpenApiTable) {
  EXPECT_EQ(bare("GET", "/health").body, R"({"status":"healthy"})");
  EXPECT_EQ(call("GET", "/v1/version").body, R"({"version":"1.2.3","api":"v1","runtime":"fake"})");
  EXPECT_THAT(bare("GET", "/docs").body, HasSubstr("POST /v1/sandboxes\n"));
  auto table = json(bare("GET", "/openapi.json"));
  EXPECT_EQ(text(table, "openapi"), "3.1.0");
  EXPECT_TRUE(table.at("paths").as_object().at("/v1/sandboxes").as_object().contains("post"));
  EXPECT_FALSE(table.at("paths").as_object().contains("/v1/images/import")) << "local routes are not advertised";
}

TEST_F(About, MetricEventsAreTakenAndForgotten) {
  for (std::string path : {"/metrics/events", "/v1/metrics/events"}) {
    auto response = call("POST", path, R"({"eventType":"sandbox.create"})");
    EXPECT_EQ(response.status, 204);
    EXPECT_TRUE(response.body.empty());
  }
}

// Imports wait for the test's sign, on the worker's thread.
class ImportingImages : public lifecycle::FakeImages {
 public:
  Result<image::Image> import(const std::string& path, const ImportOptions& options) override {
    options.progress(10, 1);
    if (path == "/bad") return Error(Errc::invalid_argument, "not an archive");
    std::unique_lock lock(mutex);
    proceed.wait(lock, [&] { return may_finish; });
    image::Image image;
    image.name = options.name;
    image.digest = "sha256:0";
    image.size_bytes = 10;
    return image;
  }
  std::mutex mutex;
  std::condition_variable proceed;
  bool may_finish = false;
};

class Images : public ApiFixture {};

TEST_F(Images, AreListedAndRemoved) {
  auto items = json(call("GET", "/v1/images")).at("items").as_array();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(text(items[0].as_object(), "name"), "debian:12");
  EXPECT_EQ(call("DELETE", "/v1/images/debian:12", "", {{"OPEN-SANDBOX-API-KEY", std::string(kOtherKey)}}).status, 403);
  EXPECT_EQ(call("DELETE", "/v1/images/debian%3A12").status, 204);
  auto gone = call("DELETE", "/v1/images/a/b:c");
  EXPECT_EQ(gone.status, 404);
  EXPECT_EQ(code_of(gone), "SANDBOX::IMAGE_NOT_FOUND");
}

TEST_F(Images, InUseAreKept) {
  create(R"({"image":{"uri":"debian:12"},"timeout":60,"resourceLimits":{},"entrypoint":["sleep","1"]})");
  auto response = call("DELETE", "/v1/images/debian:12");
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(code_of(response), "SANDBOX::IMAGE_IN_USE");
}

class Imports : public ApiFixture {
 protected:
  ImportingImages importing_;
  void SetUp() override {
    ApiFixture::SetUp();
    run(tcp_->stop(std::chrono::seconds(0)));
    run(local_->stop(std::chrono::seconds(0)));
    importing_api_ = std::make_unique<Api>(io_, *service_, *proxy_, importing_, Keys::insecure(), Options{});
    server_ = std::make_unique<http::Server>(io_, http::Limits{}, importing_api_->handler(Door::local));
    ASSERT_TRUE(server_->listen_unix(socket_path(), 0600));
  }
  void TearDown() override {
    run(server_->stop(std::chrono::seconds(0)));
    importing_api_.reset();
    ApiFixture::TearDown();
  }
  std::unique_ptr<Api> importing_api_;
  std::unique_ptr<http::Server> server_;
};

TEST_F(Imports, TellProgressAsLinesWhileTheLoopServesOthers) {
  auto connection = run(http::connect(http::Target::unix_socket(socket_path()), std::chrono::seconds(5)));
  ASSERT_TRUE(connection);
  http::ClientRequest request;
  request.method = "POST";
  request.target = "/v1/images/import";
  request.body = R"({"path":"/some/where.tar","name":"mine:1"})";
  auto head = run((*connection)->start(std::move(request)));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(local("GET", "/v1/sandboxes").status, 200) << "the loop is free meanwhile";
  {
    std::lock_guard lock(importing_.mutex);
    importing_.may_finish = true;
  }
  importing_.proceed.notify_all();
  auto body = run((*connection)->body().read_all(65536));
  ASSERT_TRUE(body);
  EXPECT_THAT(*body, testing::StartsWith("{\"bytes\":10,\"entries\":1}\n"));
  EXPECT_THAT(*body, EndsWith("{\"image\":{\"name\":\"mine:1\",\"digest\":\"sha256:0\",\"sizeBytes\":10,\"layers\":0}}\n"));
}

TEST_F(Imports, ThatFailAtOnceAreOrdinaryErrors) {
  auto response = local("POST", "/v1/images/import", R"({"path":"/bad"})");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(text(json(response), "message"), "not an archive");
  for (std::string body : {R"({})", R"({"path":7})", R"({"path":"x"})", R"({"path":"/x\u0000"})", R"({"path":"/x","name":1})"})
    EXPECT_EQ(local("POST", "/v1/images/import", body).status, 422) << body;
}

}  // namespace
}  // namespace osb::api
