// What the session door reads, writes and lets in, without a socket.
#include <gtest/gtest.h>

#include "api/sessions/parse.h"
#include "api/sessions/render.h"
#include "api/sessions/visitors.h"

namespace osb::api::sessions {
namespace {

TEST(SessionParse, RefusesWhatItDoesNotKnow) {
  auto create = parse_create(R"({"resources":{"memory":256}})");
  ASSERT_FALSE(create);
  EXPECT_EQ(create.error().code(), "SESSION::UNKNOWN_FIELD");
  EXPECT_EQ(create.error().field(), "resources.memory");
  EXPECT_NE(create.error().hint().find("memory_mb"), std::string::npos);
  for (const char* bad : {"", "[]", "{", R"({"a":1,"a":2})", R"({"ephemeral":1})", R"({"env":[]})", R"({"resources":{"pids":1e300}})",
                          R"({"resources":{"pids":-1}})", R"({"resources":{"disk_mb":0.5}})", R"({"runtime":5})"})
    EXPECT_FALSE(parse_create(bad)) << bad;
  EXPECT_TRUE(parse_create(R"({"image":null,"resources":null})"));
}

TEST(SessionParse, ReadsCommandsAsLinesAndLists) {
  EXPECT_EQ(parse_exec(R"({"command":"a b"})")->request.command, "a b");
  EXPECT_EQ(parse_exec(R"({"command":["a","b"]})")->request.argv.size(), 2u);
  EXPECT_EQ(parse_exec(R"({"command":"a","stdin":""})")->request.input, "");
  EXPECT_FALSE(parse_exec(R"({"command":"a"})")->request.input);
  EXPECT_FALSE(parse_exec(R"({"command":[1]})"));
  EXPECT_FALSE(parse_exec(R"({"argv":["a"]})"));
  EXPECT_FALSE(parse_run(R"({"command":"a","ephemeral":true})"));
  EXPECT_TRUE(parse_run(R"({"command":"a","image":"host","stream":true})")->exec.stream);
}

TEST(SessionParse, ReadsQueries) {
  EXPECT_EQ(parse_page("page=2&page_size=5")->size, 5u);
  EXPECT_FALSE(parse_page("pages=2"));
  EXPECT_EQ(parse_file_query("path=a%20b&mode=0755", true)->mode, 0755u);
  for (const char* bad : {"", "path=", "path=a&path=b", "path=a&mode=888", "path=a&mode=0", "path=a&mode=1777"})
    EXPECT_FALSE(parse_file_query(bad, true)) << bad;
}

TEST(SessionDoor, TakesOnlyNamesOfTheLoopbackForItself) {
  for (const char* fine : {"localhost", "LOCALHOST:9111", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:9111"})
    EXPECT_TRUE(is_loopback_authority(fine)) << fine;
  for (const char* bad : {"", "example.com", "localhost.example.com", "127.0.0.1.example.com", "127.0.0.1:x", "[::2]", "[::1", "[::1]x",
                          "0.0.0.0", "127.1", "1270.0.1", "127.0.0.999", "::1"})
    EXPECT_FALSE(is_loopback_authority(bad)) << bad;
}

http::Request request_of(std::optional<std::uint32_t> uid, std::vector<std::pair<std::string, std::string>> fields = {}) {
  http::Request request;
  request.peer_uid = uid;
  request.headers.add("Host", "127.0.0.1");
  for (auto& [name, value] : fields) request.headers.add(name, value);
  return request;
}

TEST(SessionDoor, KnowsUsersByTheirSocketsAndOthersByTheirKeys) {
  Keys keys;
  keys.add("team", "secret", false);
  DoorRules rules;
  rules.users_without_key = {0, 1000};
  EXPECT_EQ(identify(request_of(1000), keys, rules)->name, "user:1000");
  EXPECT_FALSE(identify(request_of(1000), keys, rules)->sees_all);
  EXPECT_FALSE(identify(request_of(1001), keys, rules));
  EXPECT_FALSE(identify(request_of(std::nullopt), keys, rules)) << "whom the kernel does not name is a stranger";
  EXPECT_EQ(identify(request_of(1001, {{"Authorization", "bearer secret"}}), keys, rules)->name, "team");
  EXPECT_EQ(identify(request_of(0, {{"X-API-Key", "secret"}}), keys, rules)->name, "team");
  EXPECT_FALSE(identify(request_of(0, {{"X-API-Key", "wrong"}}), keys, rules)) << "a wrong key is not saved by the socket";
  EXPECT_FALSE(identify(request_of(0, {{"Authorization", "Basic x"}}), keys, rules));
  rules.require_key = true;
  EXPECT_FALSE(identify(request_of(0), keys, rules));
  rules = {.loopback = false, .users_without_key = {0}, .allowed_origins = {}};
  EXPECT_FALSE(identify(request_of(0), keys, rules)) << "never without a key elsewhere than on loopback";
}

TEST(SessionRender, TellsCausesAndAdviceButNotOurInside) {
  Error ours(Errc::internal, "/var/lib/secret is gone");
  EXPECT_EQ(error_json(ours, "r").find("secret"), std::string::npos);
  auto denied = Error(Errc::permission_denied, "no").with_code("COMMAND::DENIED").at("no-rm");
  EXPECT_NE(error_json(denied, "r").find(R"("rule":"no-rm")"), std::string::npos);
  EXPECT_EQ(status_of(Error(Errc::conflict, "x").with_code("SESSION::ENDED")), 410);
  session::ExecEvent event{7, session::Output{true, "\xff"}};
  EXPECT_EQ(event_json(event), R"({"type":"stderr","seq":7,"data_base64":"/w=="})");
  EXPECT_EQ(event_json({1, session::Exit{.exit_code = 124, .cause = session::Cause::timed_out, .duration_ms = 1.5}}),
            R"({"type":"exit","seq":1,"exit":{"exit_code":124,"cause":"timed_out","timed_out":true,"duration_ms":1.5}})");
}

}  // namespace
}  // namespace osb::api::sessions
