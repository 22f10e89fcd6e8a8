// The proxy between real sockets: what crosses, what does not, and who is let in.
#include <gmock/gmock.h>

#include "proxy/proxy_fixture.h"

namespace osb::proxy {
namespace {

using testing::HasSubstr;

class Proxying : public ProxyFixture {};

TEST_F(Proxying, EveryMethodCrossesWithItsBody) {
  for (std::string method : {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    auto response = call(method, "/8080/a%2Fb//c/../d?x=1&y=%20", "body of " + method);
    EXPECT_EQ(response.status, 200) << method;
    EXPECT_EQ(response.body, "echo body of " + method);
    EXPECT_EQ(seen_.method, method);
    EXPECT_EQ(seen_.target, "/a%2Fb//c/../d?x=1&y=%20") << "the path means what it means in there";
  }
  EXPECT_EQ(dialled_, std::vector<std::uint16_t>(6, 8080));
}

TEST_F(Proxying, WithoutAPathTheRootIsAsked) {
  call("GET", "/8080");
  EXPECT_EQ(seen_.target, "/");
  call("GET", "/8080?q=1");
  EXPECT_EQ(seen_.target, "/?q=1");
}

TEST_F(Proxying, HeadHasTheLengthButNoBody) {
  auto response = call("HEAD", "/8080/x");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.get("Content-Length"), "5");
  EXPECT_EQ(response.body, "");
}

TEST_F(Proxying, ChunkedBodiesStreamBothWays) {
  backend_ = [](http::Request& request, http::Responder& responder) -> Task<void> {
    auto body = co_await request.body->read_all(1 << 20);
    auto begun = co_await responder.begin(200, {});
    for (std::size_t at = 0; begun && at < body->size(); at += 1000)
      begun = co_await responder.chunk(std::string_view(*body).substr(at, 1000));
    [[maybe_unused]] auto ended = co_await responder.end();
  };
  std::string sent(300'000, 'z');
  auto connection = loop_.run(http::connect(front(), std::chrono::seconds(5)));
  ASSERT_TRUE(connection);
  std::string raw = "POST /8080/up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n493e0\r\n" + sent + "\r\n0\r\n\r\n";
  ASSERT_TRUE(loop_.run((*connection)->stream().write_all(raw)));
  std::string got;
  char block[65536];
  while (got.find("\r\n0\r\n\r\n") == std::string::npos) {
    auto read = loop_.run((*connection)->stream().read_some(block));
    ASSERT_TRUE(read && *read > 0);
    got.append(block, *read);
  }
  EXPECT_THAT(got, testing::StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(static_cast<std::size_t>(std::count(got.begin(), got.end(), 'z')), sent.size());
  EXPECT_EQ(seen_.headers.get("Transfer-Encoding"), "chunked");
}

TEST_F(Proxying, ALongAnswerKeepsItsPromisedLength) {
  backend_ = [](http::Request&, http::Responder& responder) -> Task<void> {
    http::Response answer{200, {}, std::string(1'000'000, 'a')};
    [[maybe_unused]] auto sent = co_await responder.send(std::move(answer));
  };
  auto response = call("GET", "/8080/big");
  EXPECT_EQ(response.headers.get("Content-Length"), "1000000");
  EXPECT_EQ(response.body.size(), 1'000'000u);
}

TEST_F(Proxying, AnAnswerThatBreaksOffIsNotCompletedForTheClient) {
  backend_ = [](http::Request&, http::Responder& responder) -> Task<void> {
    [[maybe_unused]] auto begun = co_await responder.begin(200, {}, "half");
  };
  http::ClientRequest request;
  request.target = "/8080/";
  auto response = loop_.run(http::fetch(front(), std::move(request), std::chrono::seconds(10), 65536));
  EXPECT_FALSE(response);
}

TEST_F(Proxying, CredentialsAndHopHeadersDoNotReachAService) {
  call("GET", "/8080/", "",
       {{"OPEN-SANDBOX-API-KEY", "k"},
        {"X-API-Key", "k"},
        {"X-EXECD-ACCESS-TOKEN", "t"},
        {"OPENSANDBOX-EGRESS-AUTH", "t"},
        {"OpenSandbox-Secure-Access", "t"},
        {"Connection", "X-Mine, keep-alive"},
        {"X-Mine", "1"},
        {"TE", "trailers"},
        {"Proxy-Authorization", "p"},
        {"Authorization", "Bearer app"},
        {"Cookie", "session=1"},
        {"Host", "sandbox.example"},
        {"Accept", "*/*"}});
  for (auto name : {"OPEN-SANDBOX-API-KEY", "X-API-Key", "X-EXECD-ACCESS-TOKEN", "OPENSANDBOX-EGRESS-AUTH", "OpenSandbox-Secure-Access",
                    "X-Mine", "TE", "Proxy-Authorization"})
    EXPECT_FALSE(seen_.headers.has(name)) << name;
  EXPECT_EQ(seen_.headers.get("Authorization"), "Bearer app") << "the service's own affair";
  EXPECT_EQ(seen_.headers.get("Cookie"), "session=1");
  EXPECT_EQ(seen_.headers.get("Accept"), "*/*");
  EXPECT_EQ(seen_.headers.get("X-Forwarded-Host"), "sandbox.example");
  EXPECT_EQ(seen_.headers.get("X-Forwarded-Proto"), "http");
  EXPECT_EQ(seen_.headers.get("X-Forwarded-For"), "127.0.0.1");
  EXPECT_NE(seen_.headers.get("Host"), "sandbox.example");
}

TEST_F(Proxying, ExecdDoesNotSeeTheCallersSession) {
  auto fields = execd_token();
  fields.insert(fields.end(), {{"Authorization", "Bearer app"}, {"Cookie", "c"}, {"X-Keep", "1"}});
  EXPECT_EQ(call("GET", "/44772/ping", "", fields).status, 200);
  EXPECT_FALSE(seen_.headers.has("Authorization"));
  EXPECT_FALSE(seen_.headers.has("Cookie"));
  EXPECT_FALSE(seen_.headers.has("X-EXECD-ACCESS-TOKEN"));
  EXPECT_EQ(seen_.headers.get("X-Keep"), "1");
}

TEST_F(Proxying, TheBackendsHopHeadersAndRequestIdStayBehind) {
  auto response = call("GET", "/8080/", "", {{"X-Request-ID", "mine-1"}});
  EXPECT_EQ(response.headers.get("X-Backend"), "yes");
  EXPECT_EQ(response.headers.get("X-Request-ID"), "mine-1");
  EXPECT_EQ(response.headers.count("X-Request-ID"), 1u);
  EXPECT_EQ(seen_.request_id, "mine-1") << "one id on the whole way";
}

TEST_F(Proxying, TokenMatrix) {
  auto right = proxy_->tokens().execd(sandbox_);
  auto other = proxy_->tokens().execd(make(SandboxSpec{}));
  std::string name(kExecdTokenHeader);
  std::string refusal = R"({"error":"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN"})";
  for (const Fields& fields :
       {Fields{}, Fields{{name, ""}}, Fields{{name, "x"}}, Fields{{name, right.substr(1)}}, Fields{{name, right + "0"}},
        Fields{{name, other}}, Fields{{name, proxy_->tokens().egress(sandbox_)}}, Fields{{name, right}, {name, right}},
        Fields{{"OPEN-SANDBOX-API-KEY", right}}, Fields{{"Authorization", "Bearer " + right}}}) {
    auto response = call("GET", "/44772/ping?token=" + right, "", fields);
    EXPECT_EQ(response.status, 401);
    EXPECT_EQ(response.body, refusal);
  }
  EXPECT_EQ(requests_, 0u) << "nothing got through";
  EXPECT_EQ(call("GET", "/44772/ping", "", {{name, right}}).status, 200) << "the control";
  EXPECT_EQ(requests_, 1u);
}

TEST_F(Proxying, ATrustedCallerNeedsNoToken) {
  trusted_ = true;
  EXPECT_EQ(call("GET", "/44772/ping").status, 200);
  EXPECT_EQ(call("GET", "/18080/policy").status, 200);
}

TEST_F(Proxying, SecureAccessGuardsEveryPort) {
  SandboxSpec spec;
  spec.secure_access = true;
  sandbox_ = make(spec);
  std::string name(kAccessTokenHeader);
  auto right = proxy_->tokens().access(sandbox_);
  for (std::string path : {"/8080/", "/18080/policy", "/18080/healthz", "/44772/ping"}) {
    EXPECT_EQ(call("GET", path).status, 401) << path;
    EXPECT_EQ(call("GET", path, "", {{name, "wrong"}}).status, 401) << path;
  }
  EXPECT_EQ(call("GET", "/44772/ping", "", execd_token()).status, 401) << "both are needed";
  EXPECT_EQ(call("GET", "/8080/", "", {{name, right}}).status, 200);
  EXPECT_EQ(call("GET", "/44772/ping", "", {{name, right}, {std::string(kExecdTokenHeader), proxy_->tokens().execd(sandbox_)}}).status,
            200);
  EXPECT_FALSE(seen_.headers.has(name));
}

TEST_F(Proxying, NothingListeningIs502InJson) {
  auto response = call("GET", "/9/");
  EXPECT_EQ(response.status, 502);
  EXPECT_EQ(response.body, R"({"code":"GENERAL::UNKNOWN_ERROR","message":"Nothing answers on port 9 of this sandbox."})");
  runtime_.execd_target = http::Target::tcp("127.0.0.1", closed_port_);
  EXPECT_EQ(execd("GET", "/ping").status, 502);
}

TEST_F(Proxying, OnlyRealPortsAndKnownSandboxesAreTried) {
  for (std::string port : {"0", "65536", "22@evil", "-1", "+80", "80x", "0x50", "99999999999"}) {
    EXPECT_EQ(call("GET", "/" + port + "/").body, "DOCKER::INVALID_PORT") << port;
  }
  EXPECT_TRUE(dialled_.empty());
  sandbox_ = SandboxId::random();
  EXPECT_EQ(call("GET", "/8080/").body, "DOCKER::SANDBOX_NOT_FOUND");
}

TEST_F(Proxying, APausedSandboxAnswersAtOnceThatItIsNotRunning) {
  ASSERT_TRUE(loop_.run(service_->pause(sandbox_, Caller{"tester", true, "r"})));
  EXPECT_EQ(execd("GET", "/ping").body, "DOCKER::SANDBOX_NOT_RUNNING");
  EXPECT_EQ(call("GET", "/8080/").body, "DOCKER::SANDBOX_NOT_RUNNING");
  EXPECT_EQ(requests_, 0u);
  ASSERT_TRUE(loop_.run(service_->resume(sandbox_, Caller{"tester", true, "r"})));
  EXPECT_EQ(execd("GET", "/ping").status, 200) << "the control";
}

TEST_F(Proxying, OneIdleConnectionToExecdIsUsedAgain) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(execd("GET", "/ping").status, 200);
  EXPECT_EQ(backend_server_->connections(), 1u);
  EXPECT_EQ(proxy_->idle_connections(), 1u);
  proxy_->forget(sandbox_);
  EXPECT_EQ(proxy_->idle_connections(), 0u);
}

TEST_F(Proxying, ASandboxMadeAheadOfTimeHasTheConnectionForItsFirstRequest) {
  runtime_.set_spares_supported(true);
  service_->spares().watch({.ready = [this](const SandboxId& id) { proxy_->spare_ready(id); },
                            .taken = [this](const SandboxId& id) { proxy_->spare_taken(id); }});
  make(SandboxSpec{});  // from nothing; from now on two of its kind are kept
  loop_.turn_until([&] { return proxy_->connections_ahead() == 2; });
  EXPECT_EQ(proxy_->idle_connections(), 0u) << "nobody's sandbox, so no clock runs";

  runtime_.hold("prepare");  // no third one comes in between
  sandbox_ = make(SandboxSpec{});
  EXPECT_EQ(proxy_->connections_ahead(), 1u);
  EXPECT_EQ(proxy_->idle_connections(), 1u);
  EXPECT_EQ(execd("GET", "/ping").status, 200);
  loop_.turn_until([&] { return backend_server_->connections() == 2; });
  EXPECT_EQ(proxy_->idle_connections(), 1u) << "the same one, kept for the next request";
  runtime_.release("prepare");
}

TEST_F(Proxying, AConnectionAheadGoesWithItsSpare) {
  runtime_.set_spares_supported(true);
  service_->spares().watch({.ready = [this](const SandboxId& id) { proxy_->spare_ready(id); }, .taken = {}});
  runtime_.on_ended([this](const runtime::Ended& ended) {
    service_->on_ended(ended);
    proxy_->forget(ended.id);
  });
  make(SandboxSpec{});
  loop_.turn_until([&] { return proxy_->connections_ahead() == 2; });
  runtime_.hold("prepare");
  EXPECT_EQ(service_->spares().drain_automatic(), 2u);
  loop_.turn_until([&] { return proxy_->connections_ahead() == 0; });
  runtime_.release("prepare");
}

TEST_F(Proxying, AnIdleConnectionThatDiedIsReplaced) {
  EXPECT_EQ(execd("GET", "/ping").status, 200);
  loop_.run(backend_server_->stop(std::chrono::seconds(0)));
  start_backend();
  EXPECT_EQ(execd("GET", "/ping").status, 200);
}

TEST_F(Proxying, UpgradesAreTunnelledBothWays) {
  backend_ = [](http::Request& request, http::Responder& responder) -> Task<void> {
    http::Headers headers;
    headers.add("Upgrade", std::string(request.headers.get("Upgrade")));
    headers.add("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    auto stream = co_await responder.upgrade(101, std::move(headers));
    char block[64];
    auto read = co_await (*stream)->read_some(block);
    std::string back = "you said " + std::string(block, *read);
    [[maybe_unused]] auto sent = co_await (*stream)->write_all(back);
  };
  auto connection = loop_.run(http::connect(front(), std::chrono::seconds(5)));
  http::ClientRequest request;
  request.target = "/8080/ws?room=1";
  request.headers.add("Connection", "keep-alive, Upgrade");
  request.headers.add("Upgrade", "websocket");
  request.headers.add("Sec-WebSocket-Protocol", "chat");
  request.headers.add("Origin", "https://app.example");
  auto head = loop_.run((*connection)->start(std::move(request)));
  ASSERT_TRUE(head) << head.error().what();
  EXPECT_EQ(head->status, 101);
  EXPECT_EQ(head->headers.get("Upgrade"), "websocket");
  EXPECT_EQ(head->headers.get("Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  EXPECT_EQ(seen_.headers.get("Sec-WebSocket-Protocol"), "chat");
  EXPECT_EQ(seen_.headers.get("Origin"), "https://app.example");
  EXPECT_EQ(seen_.headers.get("Connection"), "Upgrade");
  ASSERT_TRUE(loop_.run((*connection)->stream().write_all("hello")));
  std::string got;
  char block[64];
  for (;;) {
    auto read = loop_.run((*connection)->stream().read_some(block));
    if (!read || *read == 0) break;
    got.append(block, *read);
  }
  EXPECT_EQ(got, "you said hello");
}

TEST_F(Proxying, AnUpgradeThatTheBackendRefusesIsAnOrdinaryAnswer) {
  auto response = call("GET", "/8080/ws", "", {{"Connection", "Upgrade"}, {"Upgrade", "websocket"}});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "echo ");
}

TEST_F(Proxying, AnUpgradeNeedsTheTokenToo) {
  Fields fields{{"Connection", "Upgrade"}, {"Upgrade", "osb-exec/1"}};
  EXPECT_EQ(call("POST", "/44772/osb/v1/exec", R"({"argv":["true"]})", fields).status, 401);
  EXPECT_EQ(requests_, 0u);
}

TEST_F(Proxying, AccessRenewsWhereTheSandboxAsksForIt) {
  SandboxSpec spec;
  spec.timeout_seconds = 240;
  spec.extensions["access.renew.extend.seconds"] = "300";
  sandbox_ = make(spec);
  auto before = *service_->find(sandbox_)->expires_at;
  EXPECT_EQ(execd("GET", "/ping").status, 200);
  loop_.turn_until([&] { return *service_->find(sandbox_)->expires_at > before; });
  auto renewed = *service_->find(sandbox_)->expires_at;
  EXPECT_GE(renewed.micros - before.micros, 50'000'000);
  EXPECT_EQ(runtime_.count("set_deadline"), 1u);
  EXPECT_EQ(execd("GET", "/ping").status, 200);
  EXPECT_EQ(runtime_.count("set_deadline"), 1u) << "at most once a minute";
  EXPECT_EQ(*service_->find(sandbox_)->expires_at, renewed);
}

TEST_F(Proxying, TheEgressApiSaysWhatHolds) {
  EXPECT_EQ(call("GET", "/18080/healthz").body, "ok") << "open";
  auto refused = call("GET", "/18080/policy");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.body, "unauthorized\n");
  auto policy = call("GET", "/18080/policy", "", egress_token());
  EXPECT_EQ(policy.status, 200);
  EXPECT_EQ(policy.body, R"({"status":"ok","mode":"deny_all","enforcementMode":"dns+nft","policy":{"defaultAction":"deny","egress":[]}})");
  for (std::string body :
       {"", "null", "{}", R"({"defaultAction":"DENY"})", R"({"defaultAction":"deny","egress":[]})", R"({"egress":null})"})
    EXPECT_EQ(call("PUT", "/18080/policy", body, egress_token()).status, 200) << body;
  for (std::string body :
       {R"({"defaultAction":"allow"})", R"({"egress":[{"action":"allow","target":"a.example"}]})", R"({"defaultAction":7})"}) {
    auto response = call("POST", "/18080/policy", body, egress_token());
    EXPECT_EQ(response.status, 403) << body;
    EXPECT_THAT(response.body, HasSubstr("only the deny-all policy is in force"));
  }
  EXPECT_EQ(call("PUT", "/18080/policy", "[", egress_token()).status, 400);
  EXPECT_EQ(call("PATCH", "/18080/policy", R"([{"action":"allow","target":"a.example"}])", egress_token()).status, 403);
  EXPECT_EQ(call("PATCH", "/18080/policy", "[]", egress_token()).status, 400);
  auto removed = call("DELETE", "/18080/policy", R"(["a.example"])", egress_token());
  EXPECT_EQ(removed.status, 200);
  EXPECT_THAT(removed.body, HasSubstr("no matching targets found"));
  EXPECT_EQ(call("DELETE", "/18080/policy", R"([1])", egress_token()).status, 400);
  EXPECT_EQ(call("OPTIONS", "/18080/policy", "", egress_token()).status, 405);
  EXPECT_EQ(call("GET", "/18080/nope", "", egress_token()).status, 404);
}

}  // namespace
}  // namespace osb::proxy
