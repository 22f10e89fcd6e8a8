// Who gets in: the matrix of every route against every way to come without a key (HT-01, HT-02).
#include <gmock/gmock.h>

#include "api/api_fixture.h"

namespace osb::api {
namespace {

class Auth : public ApiFixture {
 protected:
  // The pattern with something in place of its captures.
  static std::string path_for(const Api::Entry& entry) {
    std::string path;
    for (std::size_t i = 0; i < entry.pattern.size(); ++i) {
      if (entry.pattern[i] != '{') {
        path += entry.pattern[i];
        continue;
      }
      auto end = entry.pattern.find('}', i);
      auto name = entry.pattern.substr(i + 1, end - i - 1);
      path += name == "port" ? "8080" : std::string(kUnknownId);
      i = end;
    }
    return path;
  }
  static bool needs_key(const Api::Entry& entry) { return entry.spec->access == Access::key || entry.spec->access == Access::local; }
};

TEST(Keys, AreComparedByHashAndNameTheirOwner) {
  Keys keys;
  keys.add("alice", "a-key", false);
  keys.add_hash("bob", sha256("b-key"), true);
  http::Headers headers;
  headers.add("open-sandbox-api-key", "b-key");
  auto caller = keys.identify(headers, "r1");
  ASSERT_TRUE(caller);
  EXPECT_EQ(caller->name, "bob");
  EXPECT_TRUE(caller->sees_all);
  EXPECT_EQ(caller->request_id, "r1");
  headers.set("OPEN-SANDBOX-API-KEY", "a-key ");
  EXPECT_FALSE(keys.identify(headers, "r2"));
}

TEST(Keys, WithoutAnyKeyNobodyGetsIn) {
  Keys keys;
  http::Headers headers;
  EXPECT_FALSE(keys.identify(headers, "r"));
  headers.add("OPEN-SANDBOX-API-KEY", "");
  EXPECT_FALSE(keys.identify(headers, "r"));
  headers.set("OPEN-SANDBOX-API-KEY", "x");
  EXPECT_FALSE(keys.identify(headers, "r"));
}

TEST(Keys, InsecureAcceptsAnythingAsAnonymous) {
  auto keys = Keys::insecure();
  http::Headers headers;
  EXPECT_EQ(keys.identify(headers, "r")->name, "anonymous");
  headers.add("OPEN-SANDBOX-API-KEY", "e2e-test");
  EXPECT_TRUE(keys.identify(headers, "r")->sees_all);
}

TEST_F(Auth, EveryRouteThatNeedsAKeyRefusesEveryOtherWayIn) {
  const std::string key(kTestKey);
  const std::vector<std::pair<Fields, std::string>> ways = {
      {{}, "MISSING_API_KEY"},
      {{{"OPEN-SANDBOX-API-KEY", ""}}, "MISSING_API_KEY"},
      {{{"OPEN-SANDBOX-API-KEY", "wrong"}}, "INVALID_API_KEY"},
      {{{"OPEN-SANDBOX-API-KEY", key + "x"}}, "INVALID_API_KEY"},
      {{{"OPEN-SANDBOX-API-KEY", key.substr(1)}}, "INVALID_API_KEY"},
      {{{"OPEN-SANDBOX-API-KEY", "CORRECT-HORSE"}}, "INVALID_API_KEY"},
      {{{"Authorization", "Bearer " + key}}, "MISSING_API_KEY"},
      {{{"Cookie", "OPEN-SANDBOX-API-KEY=" + key}}, "MISSING_API_KEY"},
      {{{"X-HTTP-Method-Override", "GET"}}, "MISSING_API_KEY"},
      {{{"OPEN-SANDBOX-API-KEY", "wrong"}, {"X-API-Key", key}}, "INVALID_API_KEY"},
  };
  std::size_t checked = 0;
  for (const auto& entry : api_->entries()) {
    if (!needs_key(entry)) continue;
    for (const auto& [fields, code] : ways) {
      auto response = bare(std::string(entry.spec->method), path_for(entry) + "?OPEN-SANDBOX-API-KEY=" + key, "", fields);
      EXPECT_EQ(response.status, 401) << entry.spec->method << " " << entry.pattern;
      EXPECT_EQ(code_of(response), code) << entry.spec->method << " " << entry.pattern;
      ++checked;
    }
    if (entry.pattern.ends_with("/watch")) continue;  // never ends; approvals_test.cc has its control
    Fields good{{"OPEN-SANDBOX-API-KEY", key}};
    EXPECT_NE(bare(std::string(entry.spec->method), path_for(entry), "", good).status, 401) << "the control: " << entry.pattern;
  }
  EXPECT_GT(checked, 300u);
}

TEST_F(Auth, TwoKeyFieldsAreRefusedEvenWhenOneIsRight) {
  http::ClientRequest request;
  request.target = "/v1/sandboxes";
  request.headers.add("OPEN-SANDBOX-API-KEY", std::string(kTestKey));
  request.headers.add("OPEN-SANDBOX-API-KEY", std::string(kTestKey));
  auto response = run(http::fetch(tcp(), std::move(request), std::chrono::seconds(10), 65536));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 401);
}

TEST_F(Auth, TheAliasHeaderWorks) {
  EXPECT_EQ(bare("GET", "/v1/sandboxes", "", {{"X-API-Key", std::string(kTestKey)}}).status, 200);
  EXPECT_EQ(bare("GET", "/v1/sandboxes", "", {{"X-API-Key", "wrong"}}).status, 401);
}

TEST_F(Auth, OnlyTheNamedPathsAreOpen) {
  for (std::string path : {"/health", "/v1/health", "/openapi.json", "/docs"}) EXPECT_EQ(bare("GET", path).status, 200) << path;
}

TEST_F(Auth, PathsThatLookOpenAreNot) {
  create();
  for (std::string path : {"/health/../v1/sandboxes",
                           "/healthx",
                           "/health/",
                           "/health/x",
                           "/docs/..;/v1/sandboxes",
                           "//v1/sandboxes",
                           "/v1//sandboxes",
                           "/v1/sandboxes/%2e%2e/",
                           "/%2e%2e/v1/sandboxes",
                           "/health%2f..%2fv1%2fsandboxes",
                           "/health;x",
                           "/docs;/../sandboxes",
                           "/v1/health/..",
                           "/openapi.json/../sandboxes",
                           "/sandboxes/x/proxy",
                           "/sandboxes/x/proxyy/80",
                           "/sandboxes/x%2fproxy%2f80",
                           "/v1/v1/sandboxes",
                           "/V1/sandboxes",
                           "/metrics/events",
                           "/"}) {
    for (std::string method : {"GET", "POST", "HEAD", "OPTIONS", "DELETE", "PUT"}) {
      auto response = bare(method, path);
      EXPECT_EQ(response.status, 401) << method << " " << path << " " << response.body;
    }
  }
}

TEST_F(Auth, OtherMethodsOfOpenPathsAreNotOpen) {
  for (std::string method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) EXPECT_EQ(bare(method, "/health").status, 401) << method;
}

TEST_F(Auth, AClimbingProxyPathNeverReachesTheApi) {
  auto id = create();
  for (std::string rest : {"/../../../v1/sandboxes", "/%2e%2e/%2e%2e/%2e%2e/v1/sandboxes", "/..%2f..%2f..%2fv1/sandboxes"}) {
    auto response = bare("GET", "/sandboxes/" + id + "/proxy/8080" + rest);
    EXPECT_EQ(response.status, 502) << "nothing listens in the sandbox, and nobody else was asked: " << response.body;
  }
}

TEST_F(Auth, AnUpgradeIsNoWayAround) {
  for (std::string path : {"/v1/sandboxes", "/v1/version", "/v1/images"}) {
    Fields fields{{"Connection", "Upgrade"}, {"Upgrade", "websocket"}, {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};
    EXPECT_EQ(bare("GET", path, "", fields).status, 401) << path;
  }
}

TEST_F(Auth, NoAnswerInvitesOtherOrigins) {
  for (std::string method : {"GET", "OPTIONS"}) {
    auto response = call(method, "/v1/sandboxes", "", {{"Origin", "https://evil.example"}, {"Access-Control-Request-Method", "POST"}});
    for (const auto& field : response.headers.fields()) EXPECT_FALSE(to_lower(field.name).starts_with("access-control-")) << field.name;
  }
}

TEST_F(Auth, TheLocalDoorNeedsNoKeyAndHasRoutesOfItsOwn) {
  EXPECT_EQ(local("GET", "/v1/sandboxes").status, 200);
  EXPECT_EQ(local("POST", "/v1/images/import", R"({"path":"relative"})").status, 422);
  EXPECT_EQ(call("POST", "/v1/images/import", R"({"path":"/tmp/x"})").status, 404) << "not through TCP, whatever the key";
}

TEST_F(Auth, KeysCanBeReplacedWhileServing) {
  Keys keys;
  keys.add("new", "new-key", true);
  api_->set_keys(std::move(keys));
  EXPECT_EQ(call("GET", "/v1/sandboxes").status, 401);
  EXPECT_EQ(bare("GET", "/v1/sandboxes", "", {{"OPEN-SANDBOX-API-KEY", "new-key"}}).status, 200);
}

}  // namespace
}  // namespace osb::api
