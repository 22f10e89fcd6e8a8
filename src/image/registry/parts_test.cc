// The pure parts: names, URLs, challenges, addresses, the choice among platforms.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>

#include "base/text.h"
#include "image/registry/access.h"
#include "image/registry/challenge.h"
#include "image/registry/documents.h"
#include "image/registry/remote_name.h"
#include "image/registry/url.h"

namespace osb::image::registry {
namespace {

const std::string kHex(64, 'a');

TEST(RemoteName, TakesTagsDigestsAndPortsApart) {
  auto name = remote_name("registry.example:5000/tools/python:3.12", "");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->registry, "registry.example:5000");
  EXPECT_EQ(name->repository, "tools/python");
  EXPECT_EQ(name->selector(), "3.12");
  EXPECT_EQ(remote_name("localhost/a", "")->selector(), "latest");
  auto pinned = remote_name(cat("r.example/a:1@sha256:", kHex), "");
  ASSERT_TRUE(pinned);
  EXPECT_EQ(pinned->selector(), cat("sha256:", kHex)) << "the digest decides";
}

TEST(RemoteName, ShortNamesNeedADefault) {
  auto none = remote_name("python:3.12", "");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind(), Errc::not_found);
  EXPECT_NE(none.error().hint().find("default_registry"), std::string::npos);
  auto name = remote_name("python:3.12", "r.example:5000/mirror");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->registry, "r.example:5000");
  EXPECT_EQ(name->repository, "mirror/python");
  EXPECT_FALSE(remote_name("host", "r.example")) << "host is built in";
  EXPECT_EQ(remote_name("other.example/a:1", "r.example")->registry, "other.example") << "a registry that is named wins";
}

TEST(RemoteName, OddNamesAreRefused) {
  for (const char* odd : {"", "r.example/", "r.example:x/a", "r.example:0/a", "r.example:70000/a", "R.example/a", "r.example/A",
                          "a@sha256:12", "http://r.example/a", "r.example/a:b:c", "r.example/../a", "user@r.example/a"})
    EXPECT_FALSE(remote_name(odd, "")) << odd;
}

TEST(Url, ReadsWhatRegistriesHandOut) {
  auto url = parse_url("https://R.example:8443/v2/a?x=1#part");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->origin, (Origin{true, "r.example", 8443}));
  EXPECT_EQ(url->target, "/v2/a?x=1");
  EXPECT_EQ(parse_url("http://[::1]:5000")->origin, (Origin{false, "::1", 5000}));
  EXPECT_EQ(parse_url("https://r.example")->text(), "https://r.example/");
  for (const char* odd : {"", "ftp://r.example/", "file:///etc/passwd", "https://", "https://user:pw@r.example/", "https://r.example:/",
                          "https://r.example:0/", "https://r example/", "https://r.example/a\r\nX: y", "https://[::1/", "//r.example/",
                          "https://[r.example]/"})
    EXPECT_FALSE(parse_url(odd)) << odd;
}

TEST(Url, FollowsRelativeLocationsFromWhereItIs) {
  Url base{{true, "r.example", 443}, "/v2/a/blobs/x"};
  EXPECT_EQ(follow(base, "/elsewhere")->text(), "https://r.example/elsewhere");
  EXPECT_EQ(follow(base, "//cdn.example/b")->text(), "https://cdn.example/b");
  EXPECT_EQ(follow(base, "http://cdn.example/b")->text(), "http://cdn.example/b");
  EXPECT_FALSE(follow(base, "elsewhere"));
  EXPECT_FALSE(follow(base, ""));
}

TEST(Url, KnowsNeighboursFromStrangers) {
  EXPECT_TRUE(are_neighbours("r.example", "r.example"));
  EXPECT_TRUE(are_neighbours("registry.corp.example", "auth.corp.example"));
  EXPECT_TRUE(are_neighbours("registry.corp.example", "corp.example"));
  EXPECT_TRUE(are_neighbours("corp.example", "auth.corp.example"));
  EXPECT_FALSE(are_neighbours("r.example", "s.example")) << "a top-level domain is no family";
  EXPECT_FALSE(are_neighbours("registry.corp.example", "corp.example.evil.test"));
  EXPECT_FALSE(are_neighbours("registry.corp.example", "evilcorp.example"));
  EXPECT_FALSE(are_neighbours("10.0.0.1", "10.0.0.2"));
  EXPECT_FALSE(are_neighbours("localhost", "r.localhost.example"));
}

TEST(Challenge, TheTokenServiceIsFoundAmongOthers) {
  auto found = choose_challenge(
      {R"(Negotiate dGVzdA==, Basic realm="b", Bearer realm="https://auth.r.example/token",service="r.example",scope="a:b,c:d")"});
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->scheme, Challenge::Scheme::bearer);
  EXPECT_EQ((*found)->realm, "https://auth.r.example/token");
  EXPECT_EQ((*found)->service, "r.example");
  auto basic = choose_challenge({"Digest qop=auth", R"(bAsIc realm="quoted \"inside\"")"});
  ASSERT_TRUE(basic && *basic);
  EXPECT_EQ((*basic)->scheme, Challenge::Scheme::basic);
  EXPECT_EQ((*basic)->realm, R"(quoted "inside")");
  auto two = choose_challenge({R"(Basic realm="b")", R"(Bearer realm="https://r.example/t")"});
  EXPECT_EQ((**two).scheme, Challenge::Scheme::bearer) << "also when it comes second";
}

TEST(Challenge, OddOnesAreNobodys) {
  for (const char* odd : {"", ",,,", "=", "\"", "Unknown x=y", "realm=x", "Bearerr realm=\"x\""}) {
    auto found = choose_challenge({odd});
    ASSERT_TRUE(found) << odd;
    EXPECT_FALSE(*found) << odd;
  }
  EXPECT_FALSE(choose_challenge({"Bearer"})) << "a token without a place to get it";
  EXPECT_FALSE(choose_challenge({"Bearer realm=\"unclosed"}));
}

TEST(Challenge, EncodesCredentials) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("a"), "YQ==");
  EXPECT_EQ(base64("ab"), "YWI=");
  EXPECT_EQ(base64("me:sesame"), "bWU6c2VzYW1l");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

Reach reach(const char* text) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  if (::inet_pton(AF_INET, text, &v4.sin_addr) == 1) return reach_of(reinterpret_cast<const sockaddr*>(&v4));
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  EXPECT_EQ(::inet_pton(AF_INET6, text, &v6.sin6_addr), 1) << text;
  return reach_of(reinterpret_cast<const sockaddr*>(&v6));
}

TEST(Access, SortsAddresses) {
  for (const char* a : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) EXPECT_EQ(reach(a), Reach::loopback) << a;
  for (const char* a : {"10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1", "fd00::1", "fc00::1", "::ffff:10.0.0.1",
                        "64:ff9b::a00:1", "2002:a00:1::"})
    EXPECT_EQ(reach(a), Reach::inside) << a;
  for (const char* a : {"169.254.169.254", "0.0.0.0", "224.0.0.1", "255.255.255.255", "fe80::1", "::", "ff02::1", "::ffff:169.254.169.254"})
    EXPECT_EQ(reach(a), Reach::local) << a;
  for (const char* a : {"8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "11.0.0.1"}) EXPECT_EQ(reach(a), Reach::open) << a;
}

TEST(Access, ARegistryOnTheOpenNetworkCannotSendUsInside) {
  Registries plain;
  Origin target{true, "inner.example", 443};
  EXPECT_TRUE(check_reach(Reach::inside, Reach::open, true, target, plain)) << "a private registry that the user names";
  EXPECT_FALSE(check_reach(Reach::inside, Reach::open, false, target, plain));
  EXPECT_FALSE(check_reach(Reach::loopback, Reach::open, false, target, plain));
  EXPECT_TRUE(check_reach(Reach::open, Reach::open, false, target, plain));
  EXPECT_TRUE(check_reach(Reach::inside, Reach::inside, false, target, plain));
  EXPECT_FALSE(check_reach(Reach::local, Reach::inside, true, target, plain)) << "not even when it is named";
  Registries trusting;
  trusting.trusted_hosts = {"inner.example"};
  EXPECT_TRUE(check_reach(Reach::inside, Reach::open, false, target, trusting));
  EXPECT_TRUE(check_reach(Reach::local, Reach::open, true, target, trusting));
}

TEST(Access, PlainHttpIsForLoopbackAndTheList) {
  Registries registries;
  registries.insecure = {"lan.example:5000", "old.example"};
  EXPECT_TRUE(may_be_plain({false, "localhost", 5000}, registries));
  EXPECT_TRUE(may_be_plain({false, "127.0.0.1", 5000}, registries));
  EXPECT_TRUE(may_be_plain({false, "lan.example", 5000}, registries));
  EXPECT_TRUE(may_be_plain({false, "old.example", 80}, registries));
  EXPECT_FALSE(may_be_plain({false, "lan.example", 5001}, registries));
  EXPECT_FALSE(may_be_plain({false, "127.0.0.1.evil.example", 80}, registries));
  EXPECT_FALSE(may_be_plain({false, "localhost.evil.example", 80}, registries));
}

TEST(Documents, OneTypeAndNotTwo) {
  EXPECT_EQ(*type_of("application/vnd.oci.image.manifest.v1+json; charset=utf-8", "{}"), kOciManifest);
  EXPECT_EQ(*type_of("text/plain", cat(R"({"mediaType":")", kOciIndex, R"("})")), kOciIndex);
  EXPECT_FALSE(type_of(kOciManifest, cat(R"({"mediaType":")", kOciIndex, R"("})")));
  EXPECT_FALSE(type_of("text/html", "{}"));
  EXPECT_FALSE(type_of(kOciManifest, "[]"));
  EXPECT_FALSE(type_of(kOciManifest, "{"));
}

}  // namespace
}  // namespace osb::image::registry
