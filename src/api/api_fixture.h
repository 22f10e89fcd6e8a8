// For tests only: the API behind real sockets, with a runtime, a store and images made of memory.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <string>

#include "api/api.h"
#include "api/auth.h"
#include "base/log.h"
#include "http/http.h"
#include "lifecycle/fake_runtime.h"
#include "lifecycle/fake_store.h"
#include "proxy/test_loop.h"

namespace osb::api {

inline constexpr std::string_view kTestKey = "correct-horse";
inline constexpr std::string_view kOtherKey = "other-tenant";
inline constexpr std::string_view kUnknownId = "00000000000000000000000000";
inline constexpr std::string_view kCreateBody = R"({"image":{"uri":"host"},"timeout":600,"resourceLimits":{"cpu":"1","memory":"256Mi"},)"
                                                R"("entrypoint":["tail","-f","/dev/null"],"metadata":{"team":"a"},"secureAccess":false})";

class ApiFixture : public testing::Test {
 protected:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  void SetUp() override {
    log::set_level(log::Level::error);
    char path[] = "/tmp/osb-api-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    directory_ = path;
    audit_ = audit::Log::discard();
    service_ = std::make_unique<lifecycle::Service>(io_, store_, *audit_, images_, runtime_, lifecycle::Options{});
    runtime_.on_ended([this](const runtime::Ended& ended) { service_->on_ended(ended); });
    ASSERT_TRUE(run(service_->start()));
    proxy_ = std::make_unique<proxy::Proxy>(io_, *service_, *audit_, proxy::Tokens("secret"));
    open(test_keys());
  }

  void TearDown() override {
    run(tcp_->stop(std::chrono::seconds(0)));
    run(local_->stop(std::chrono::seconds(0)));
    run(proxy_->stop());
    run(service_->stop());
    ::unlink(socket_path().c_str());
    ::rmdir(directory_.c_str());
  }

  static Keys test_keys() {
    Keys keys;
    keys.add("default", kTestKey, true);
    keys.add("other", kOtherKey, false);
    return keys;
  }

  // Both doors in front of an API with these keys.
  void open(Keys keys) {
    Options options;
    options.version = "1.2.3";
    options.tcp_authority = "127.0.0.1:8080";
    api_ = std::make_unique<Api>(io_, *service_, *proxy_, images_, std::move(keys), std::move(options));
    tcp_ = std::make_unique<http::Server>(io_, http::Limits{}, api_->handler(Door::tcp));
    local_ = std::make_unique<http::Server>(io_, http::Limits{}, api_->handler(Door::local));
    auto port = tcp_->listen_tcp("127.0.0.1", 0);
    ASSERT_TRUE(port) << port.error().what();
    port_ = *port;
    auto listening = local_->listen_unix(socket_path(), 0600);
    ASSERT_TRUE(listening) << listening.error().what();
  }

  template <class T>
  T run(Task<T> task) {
    return loop_.run(std::move(task));
  }
  void run(Task<void> task) { loop_.run(std::move(task)); }

  http::ClientResponse send(http::Target target, std::string method, std::string path, std::string body, Fields fields) {
    http::ClientRequest request;
    request.method = std::move(method);
    request.target = std::move(path);
    if (!body.empty()) request.headers.add("Content-Type", "application/json");
    for (auto& [name, value] : fields) request.headers.set(name, value);
    request.body = std::move(body);
    auto response = run(http::fetch(std::move(target), std::move(request), std::chrono::seconds(10), 16 << 20));
    EXPECT_TRUE(response) << (response ? "" : response.error().what());
    return response ? *std::move(response) : http::ClientResponse{};
  }

  // With the first key.
  http::ClientResponse call(std::string method, std::string path, std::string body = {}, Fields fields = {}) {
    fields.insert(fields.begin(), {"OPEN-SANDBOX-API-KEY", std::string(kTestKey)});
    return send(tcp(), std::move(method), std::move(path), std::move(body), std::move(fields));
  }
  // Exactly as given, no key added.
  http::ClientResponse bare(std::string method, std::string path, std::string body = {}, Fields fields = {}) {
    return send(tcp(), std::move(method), std::move(path), std::move(body), std::move(fields));
  }
  http::ClientResponse local(std::string method, std::string path, std::string body = {}, Fields fields = {}) {
    return send(http::Target::unix_socket(socket_path()), std::move(method), std::move(path), std::move(body), std::move(fields));
  }

  std::string create(std::string body = std::string(kCreateBody)) {
    auto response = call("POST", "/v1/sandboxes", std::move(body));
    EXPECT_EQ(response.status, 202) << response.body;
    return text(json(response), "id");
  }

  static boost::json::object json(const http::ClientResponse& response) {
    boost::system::error_code failed;
    auto value = boost::json::parse(response.body, failed);
    EXPECT_FALSE(failed) << response.body;
    return !failed && value.is_object() ? value.get_object() : boost::json::object{};
  }
  static std::string text(const boost::json::object& object, std::string_view name) {
    const auto* value = object.if_contains(name);
    return value && value->is_string() ? std::string(value->get_string()) : std::string();
  }
  static std::string code_of(const http::ClientResponse& response) { return text(json(response), "code"); }

  http::Target tcp() const { return http::Target::tcp("127.0.0.1", port_); }
  std::string socket_path() const { return directory_ + "/api.sock"; }

  proxy::TestLoop loop_;
  asio::io_context& io_ = loop_.io;
  lifecycle::FakeRuntime runtime_{io_};
  lifecycle::FakeStore store_;
  lifecycle::FakeImages images_;
  std::unique_ptr<audit::Log> audit_;
  std::unique_ptr<lifecycle::Service> service_;
  std::unique_ptr<proxy::Proxy> proxy_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<http::Server> tcp_;
  std::unique_ptr<http::Server> local_;
  std::uint16_t port_ = 0;
  std::string directory_;
};

}  // namespace osb::api
