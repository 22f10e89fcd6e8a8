// For tests only: a proxy in front of a small backend that plays execd and the services of a sandbox.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/log.h"
#include "http/http.h"
#include "lifecycle/fake_runtime.h"
#include "lifecycle/fake_store.h"
#include "proxy/proxy.h"
#include "proxy/test_loop.h"

namespace osb::proxy {

class ProxyFixture : public testing::Test {
 protected:
  using Fields = std::vector<std::pair<std::string, std::string>>;
  using Backend = std::function<Task<void>(http::Request&, http::Responder&)>;

  void SetUp() override {
    log::set_level(log::Level::error);
    char path[] = "/tmp/osb-proxy-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    directory_ = path;
    auto log = audit::Log::open(directory_);
    ASSERT_TRUE(log) << log.error().what();
    audit_ = *std::move(log);
    service_ = std::make_unique<lifecycle::Service>(loop_.io, store_, *audit_, images_, runtime_, lifecycle::Options{});
    ASSERT_TRUE(loop_.run(service_->start()));
    proxy_ = std::make_unique<Proxy>(loop_.io, *service_, *audit_, Tokens("secret"));
    start_servers();
    runtime_.dial_with = [this](SandboxId, std::uint16_t port) {
      dialled_.push_back(port);
      return http::connect(http::Target::tcp("127.0.0.1", port == kClosedPort ? closed_port_ : backend_port_), std::chrono::seconds(5));
    };
    sandbox_ = make(SandboxSpec{});
  }

  void start_servers() {
    http::Handler relay = [this](http::Request& request, http::Responder& responder) { return pass(request, responder); };
    front_ = std::make_unique<http::Server>(loop_.io, http::Limits{}, relay);
    front_port_ = *front_->listen_tcp("127.0.0.1", 0);
    start_backend();
    // A port that was free a moment ago and that nobody listens on.
    http::Server closed(loop_.io, http::Limits{}, relay);
    closed_port_ = *closed.listen_tcp("127.0.0.1", 0);
    loop_.run(closed.stop(std::chrono::seconds(0)));
  }

  void start_backend() {
    http::Handler answer = [this](http::Request& request, http::Responder& responder) { return play(request, responder); };
    backend_server_ = std::make_unique<http::Server>(loop_.io, http::Limits{}, answer);
    backend_port_ = *backend_server_->listen_tcp("127.0.0.1", 0);
    runtime_.execd_target = http::Target::tcp("127.0.0.1", backend_port_);
  }

  void TearDown() override {
    loop_.run(front_->stop(std::chrono::seconds(0)));
    loop_.run(proxy_->stop());
    loop_.run(backend_server_->stop(std::chrono::seconds(0)));
    loop_.run(service_->stop());
    ::unlink((directory_ + "/audit.jsonl").c_str());
    ::rmdir(directory_.c_str());
  }

  SandboxId make(SandboxSpec spec) {
    spec.image = "host";
    spec.entrypoint = {"sleep", "infinity"};
    if (!spec.timeout_seconds) spec.timeout_seconds = 600;
    auto sandbox = loop_.run(service_->create(std::move(spec), Caller{"tester", true, "r"}));
    EXPECT_TRUE(sandbox) << sandbox.error().what();
    return sandbox->id;
  }

  // What the API room does: "/{port}/rest" to the sandbox under test.
  Task<void> pass(http::Request& request, http::Responder& responder) {
    auto slash = request.path.find('/', 1);
    Route route{sandbox_.text(), request.path.substr(1, slash - 1), slash == std::string::npos ? "/" : request.path.substr(slash),
                trusted_};
    if (!request.query.empty()) route.target += "?" + request.query;
    Caller caller{"token", false, request.request_id};
    auto done = co_await proxy_->serve(request, responder, std::move(route), std::move(caller));
    if (done) co_return;
    [[maybe_unused]] auto sent = co_await responder.send(http::Response::json(599, done.error().code()));
  }

  Task<void> play(http::Request& request, http::Responder& responder) {
    seen_ = {request.method, request.target,   request.path,       request.query, request.headers,
             request.peer,   request.peer_uid, request.request_id, nullptr};
    ++requests_;
    if (backend_) co_return co_await backend_(request, responder);
    auto body = co_await request.body->read_all(1 << 20);
    seen_body_ = body ? *body : "unreadable";
    http::Response answer{200, {}, "echo " + seen_body_};
    answer.headers.add("X-Backend", "yes");
    answer.headers.add("Connection", "X-Hop");
    answer.headers.add("X-Hop", "1");
    [[maybe_unused]] auto sent = co_await responder.send(std::move(answer));
  }

  http::ClientResponse call(std::string method, std::string path, std::string body = {}, Fields fields = {}) {
    http::ClientRequest request;
    request.method = std::move(method);
    request.target = std::move(path);
    request.body = std::move(body);
    for (auto& [name, value] : fields) request.headers.add(name, value);
    auto response = loop_.run(http::fetch(front(), std::move(request), std::chrono::seconds(10), 64 << 20));
    EXPECT_TRUE(response) << (response ? "" : response.error().what());
    return response ? *std::move(response) : http::ClientResponse{};
  }
  http::ClientResponse execd(std::string method, std::string path, std::string body = {}) {
    return call(std::move(method), "/44772" + path, std::move(body), execd_token());
  }
  Fields execd_token() { return {{std::string(kExecdTokenHeader), proxy_->tokens().execd(sandbox_)}}; }
  Fields egress_token() { return {{std::string(kEgressTokenHeader), proxy_->tokens().egress(sandbox_)}}; }

  std::string audit_text() {
    std::ifstream file(directory_ + "/audit.jsonl");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::size_t recorded(const std::string& action) {
    std::size_t n = 0;
    auto text = audit_text();
    for (auto at = text.find("\"" + action + "\""); at != std::string::npos; at = text.find("\"" + action + "\"", at + 1)) ++n;
    return n;
  }

  http::Target front() const { return http::Target::tcp("127.0.0.1", front_port_); }

  static constexpr std::uint16_t kClosedPort = 9;
  TestLoop loop_;
  lifecycle::FakeRuntime runtime_{loop_.io};
  lifecycle::FakeStore store_;
  lifecycle::FakeImages images_;
  std::unique_ptr<audit::Log> audit_;
  std::unique_ptr<lifecycle::Service> service_;
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<http::Server> front_;
  std::unique_ptr<http::Server> backend_server_;
  std::uint16_t front_port_ = 0;
  std::uint16_t backend_port_ = 0;
  std::uint16_t closed_port_ = 0;
  std::string directory_;
  SandboxId sandbox_ = SandboxId::random();
  bool trusted_ = false;
  Backend backend_;
  http::Request seen_;
  std::string seen_body_;
  std::size_t requests_ = 0;
  std::vector<std::uint16_t> dialled_;
};

}  // namespace osb::proxy
