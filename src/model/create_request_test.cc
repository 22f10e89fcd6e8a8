#include "model/create_request.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace osb {
namespace {

const CreateDefaults kDefaults{.limits = {}, .policy = {}, .max_timeout_seconds = std::nullopt, .arch = "amd64"};

// A request that is fine, with some members replaced or added.
std::string body(std::string_view more = "", std::string_view image = R"({"uri":"host"})",
                 std::string_view entrypoint = R"(["tail","-f","/dev/null"])", std::string_view limits = "{}") {
  return cat(R"({"image":)", image, R"(,"entrypoint":)", entrypoint, R"(,"resourceLimits":)", limits, more.empty() ? "" : ",", more, "}");
}

struct Refusal {
  std::string request;
  Errc kind;
  std::string_view code;
  std::string_view field;
};

void expect_refused(const Refusal& row, const CreateDefaults& defaults = kDefaults) {
  auto spec = parse_create(row.request, defaults);
  ASSERT_FALSE(spec) << row.request.substr(0, 300);
  EXPECT_EQ(spec.error().kind(), row.kind) << row.request.substr(0, 300) << "\n" << spec.error().what();
  EXPECT_EQ(spec.error().code(), row.code) << row.request.substr(0, 300) << "\n" << spec.error().what();
  EXPECT_EQ(spec.error().field(), row.field) << row.request.substr(0, 300);
  EXPECT_FALSE(spec.error().what().empty());
}

constexpr std::string_view kParameter = "SANDBOX::INVALID_PARAMETER";
constexpr auto kShape = Errc::malformed;
constexpr auto kValue = Errc::invalid_argument;

TEST(ParseCreate, ReadsWhatPublishedClientsSend) {
  auto spec = parse_create(
      R"({"image":{"uri":"opensandbox/code-interpreter:latest","auth":{"username":"u","password":"p"}},"timeout":600,
          "resourceLimits":{"cpu":"1","memory":"2Gi"},"env":{"A":"1","GONE":null,"EMPTY":""},"metadata":{"tag":"demo"},
          "entrypoint":["tail","-f","/dev/null"],"secureAccess":false,"extensions":{},"networkPolicy":null,"volumes":[],
          "platform":{"os":"linux","arch":"amd64"},"somethingNew":{"x":[1]}})",
      kDefaults);
  ASSERT_TRUE(spec) << spec.error().what();
  EXPECT_EQ(spec->image, "opensandbox/code-interpreter:latest");
  EXPECT_EQ(spec->timeout_seconds, 600);
  EXPECT_EQ(spec->limits.memory_bytes, 2ull << 30);
  EXPECT_EQ(spec->limits.cpu_millis, 1000u);
  EXPECT_EQ(spec->limits.pids, Limits{}.pids);
  EXPECT_EQ(spec->env, (StringMap{{"A", "1"}, {"EMPTY", ""}}));
  EXPECT_EQ(spec->metadata, (StringMap{{"tag", "demo"}}));
  EXPECT_EQ(spec->entrypoint, (std::vector<std::string>{"tail", "-f", "/dev/null"}));
  EXPECT_FALSE(spec->secure_access);
  EXPECT_EQ(spec->platform, (std::pair<std::string, std::string>("linux", "amd64")));
}

TEST(ParseCreate, NullAndAbsentMeanTheSame) {
  auto spec = parse_create(
      body(
          R"("timeout":null,"env":null,"metadata":null,"extensions":null,"volumes":null,"platform":null,"snapshotId":null,"credentialProxy":null,"secureAccess":null)"),
      kDefaults);
  ASSERT_TRUE(spec) << spec.error().what();
  EXPECT_EQ(spec->timeout_seconds, std::nullopt);
  EXPECT_EQ(spec->platform, std::nullopt);
  EXPECT_EQ(spec->limits, Limits{});
  EXPECT_EQ(spec->policy, Policy{});
}

TEST(ParseCreate, RefusesTheWrongShapeAsSuch) {
  const Refusal rows[] = {
      {"[]", kShape, kParameter, ""},
      {"{}", kShape, kParameter, "image"},
      {R"({"image":{"uri":"host"}})", kShape, kParameter, "entrypoint"},
      {R"({"image":{"uri":"host"},"entrypoint":["a"]})", kShape, kParameter, "resourceLimits"},
      {R"({"image":"host","entrypoint":["a"],"resourceLimits":{}})", kShape, kParameter, "image"},
      {body("", "{}"), kShape, kParameter, "image.uri"},
      {body("", R"({"uri":"  "})"), kShape, kParameter, "image.uri"},
      {body("", R"({"uri":7})"), kShape, kParameter, "image.uri"},
      {body("", R"({"uri":"host","auth":"x"})"), kShape, kParameter, "auth"},
      {body("", R"({"uri":"host","auth":{"username":1}})"), kShape, kParameter, "image.auth.username"},
      {body(R"("snapshotId":"s")"), kShape, kParameter, "image"},
      {body(R"("snapshotId":1)"), kShape, kParameter, "snapshotId"},
      {body("", R"({"uri":"host"})", "[]"), kShape, kParameter, "entrypoint"},
      {body("", R"({"uri":"host"})", "\"tail -f\""), kShape, kParameter, "entrypoint"},
      {body("", R"({"uri":"host"})", "[1]"), kShape, kParameter, "entrypoint[0]"},
      {body("", R"({"uri":"host"})", R"(["a",null])"), kShape, kParameter, "entrypoint[1]"},
      {body("", R"({"uri":"host"})", R"(["a"])", "[]"), kShape, kParameter, "resourceLimits"},
      {body("", R"({"uri":"host"})", R"(["a"])", "null"), kShape, kParameter, "resourceLimits"},
      {body("", R"({"uri":"host"})", R"(["a"])", R"({"cpu":1})"), kShape, kParameter, "resourceLimits.cpu"},
      {body("", R"({"uri":"host"})", R"(["a"])", R"({"memory":null})"), kShape, kParameter, "resourceLimits.memory"},
      {body(R"("timeout":59)"), kShape, kParameter, "timeout"},
      {body(R"("timeout":0)"), kShape, kParameter, "timeout"},
      {body(R"("timeout":-1)"), kShape, kParameter, "timeout"},
      {body(R"("timeout":-9223372036854775808)"), kShape, kParameter, "timeout"},
      {body(R"("timeout":-1e300)"), kShape, kParameter, "timeout"},
      {body(R"("timeout":60.5)"), kShape, kParameter, "timeout"},
      {body(R"("timeout":"600")"), kShape, kParameter, "timeout"},
      {body(R"("timeout":true)"), kShape, kParameter, "timeout"},
      {body(R"("timeout":{})"), kShape, kParameter, "timeout"},
      {body(R"("env":[])"), kShape, kParameter, "env"},
      {body(R"("env":{"A":1})"), kShape, kParameter, "env.A"},
      {body(R"("metadata":{"a":null})"), kShape, kParameter, "metadata.a"},
      {body(R"("metadata":"x")"), kShape, kParameter, "metadata"},
      {body(R"("extensions":{"a":1})"), kShape, kParameter, "extensions.a"},
      {body(R"("platform":{"os":"linux"})"), kShape, kParameter, "platform.arch"},
      {body(R"("platform":{"os":"plan9","arch":"amd64"})"), kShape, kParameter, "platform.os"},
      {body(R"("platform":{"os":"linux","arch":"riscv64"})"), kShape, kParameter, "platform.arch"},
      {body(R"("networkPolicy":"deny")"), kShape, kParameter, "networkPolicy"},
      {body(R"("networkPolicy":{"defaultAction":"maybe"})"), kShape, kParameter, "networkPolicy.defaultAction"},
      {body(R"("networkPolicy":{"egress":{}})"), kShape, kParameter, "networkPolicy.egress"},
      {body(R"("networkPolicy":{"egress":[{"action":"deny"}]})"), kShape, kParameter, "networkPolicy.egress[0].target"},
      {body(R"("networkPolicy":{"egress":[{"target":"a"}]})"), kShape, kParameter, "networkPolicy.egress[0].action"},
      {body(R"("networkPolicy":{"egress":[1]})"), kShape, kParameter, "networkPolicy.egress[0]"},
      {body(R"("credentialProxy":{"enabled":true})"), kShape, kParameter, "credentialProxy"},
      {body(R"("credentialProxy":{"enabled":"yes"})"), kShape, kParameter, "credentialProxy.enabled"},
      {body(R"("secureAccess":"true")"), kShape, kParameter, "secureAccess"},
      {body(R"("volumes":{})"), kShape, kParameter, "volumes"},
      {body(R"("volumes":["/etc"])"), kShape, kParameter, "volumes[0]"},
      {body(R"("extensions":{"poolRef":"p"},"snapshotId":"s")"), kShape, kParameter, "snapshotId"},
      {body(R"("extensions":{"poolRef":"p"},"networkPolicy":{},"credentialProxy":{"enabled":true})"), kShape, kParameter,
       "credentialProxy"},
  };
  for (const auto& row : rows) expect_refused(row);
}

TEST(ParseCreate, RefusesValuesWithTheirCodes) {
  const Refusal rows[] = {
      {"{nonsense", kValue, kParameter, ""},
      {"", kValue, kParameter, ""},
      {body(R"("timeout":9223372036854775807)"), kValue, kParameter, "timeout"},
      {body(R"("timeout":9223372036854775808)"), kValue, kParameter, "timeout"},
      {body(R"("timeout":1e300)"), kValue, kParameter, "timeout"},
      {body(R"("timeout":18446744073709551615)"), kValue, kParameter, "timeout"},
      {R"({"snapshotId":"snap-1","resourceLimits":{}})", Errc::not_found, "SNAPSHOT::NOT_FOUND", "snapshotId"},
      {R"({"extensions":{"poolRef":"warm"}})", kValue, "SANDBOX::UNSUPPORTED_POOL_REF", "extensions.poolRef"},
      {body(R"("platform":{"os":"windows","arch":"amd64"})"), kValue, kParameter, "platform.os"},
      {body(R"("platform":{"os":"linux","arch":"arm64"})"), kValue, kParameter, "platform.arch"},
      {body(R"("networkPolicy":{"defaultAction":"allow"})"), kValue, kParameter, "networkPolicy"},
      {body(R"("networkPolicy":{"egress":[{"action":"deny","target":"a"},{"action":"allow","target":"b"}]})"), kValue, kParameter,
       "networkPolicy"},
      {body(R"("networkPolicy":{},"credentialProxy":{"enabled":true})"), kValue, kParameter, "credentialProxy"},
      {body(R"("volumes":[{"name":"v","ossfs":{"bucket":"abc"},"mountPath":"/m"}])"), Errc::invalid_argument, "VOLUME::UNSUPPORTED_BACKEND",
       "volumes[0].ossfs"},
      {body(R"("metadata":{"opensandbox.io/id":"x"})"), kValue, "SANDBOX::INVALID_METADATA_LABEL", "metadata.opensandbox.io/id"},
      {body(R"("metadata":{"a":"not a label"})"), kValue, "SANDBOX::INVALID_METADATA_LABEL", "metadata.a"},
      {body(R"("env":{"A=B":"x"})"), kValue, kParameter, "env.A=B"},
      {body(R"("env":{"":"x"})"), kValue, kParameter, "env"},
      {body(R"("env":{"A":"x\u0000y"})"), kValue, kParameter, "env.A"},
      {body(R"("env":{"A\u0000B":"x"})"), kValue, kParameter, std::string_view("env.A\0B", 7)},
      {body(cat(R"("env":{"BIG":")", std::string(kMaxEnvBytes, 'x'), "\"}")), kValue, kParameter, "env"},
      {body("", R"({"uri":"host"})", R"([""])"), kValue, "DOCKER::INVALID_ENTRYPOINT", "entrypoint"},
      {body("", R"({"uri":"host"})", R"(["   "])"), kValue, "DOCKER::INVALID_ENTRYPOINT", "entrypoint"},
      {body("", R"({"uri":"host"})", R"(["\u0000"])"), kValue, "DOCKER::INVALID_ENTRYPOINT", "entrypoint"},
      {body("", R"({"uri":"host"})", R"(["sh","a\u0000b"])"), kValue, "DOCKER::INVALID_ENTRYPOINT", "entrypoint"},
      {body("", R"({"uri":"host"})", R"(["echo 'open"])"), kValue, "DOCKER::INVALID_ENTRYPOINT", "entrypoint"},
      {body(R"("extensions":{"access.renew.extend.seconds":"299"})"), kValue, kParameter, "extensions.access.renew.extend.seconds"},
      {body(R"("extensions":{"access.renew.extend.seconds":"86401"})"), kValue, kParameter, "extensions.access.renew.extend.seconds"},
      {body(R"("extensions":{"access.renew.extend.seconds":"5m"})"), kValue, kParameter, "extensions.access.renew.extend.seconds"},
      {body(R"("extensions":{"opensandbox.mode":"admin"})"), kValue, kParameter, "extensions.opensandbox.mode"},
      {body(R"("extensions":{"opensandbox.syscalls":"all"})"), kValue, kParameter, "extensions.opensandbox.syscalls"},
      {body(R"("extensions":{"opensandbox.root":"yes"})"), kValue, kParameter, "extensions.opensandbox.root"},
      {body(R"("extensions":{"opensandbox.pids":"0"})"), kValue, kParameter, "extensions.opensandbox.pids"},
      {body(R"("extensions":{"opensandbox.disk":"-1"})"), kValue, kParameter, "extensions.opensandbox.disk"},
      {body(R"("extensions":{"opensandbox.syscall":"minimal"})"), kValue, kParameter, "extensions.opensandbox.syscall"},
  };
  for (const auto& row : rows) expect_refused(row);
}

TEST(ParseCreate, RefusesEveryAbsurdLimit) {
  for (std::string_view name : {"cpu", "memory", "disk", "pids"}) {
    for (std::string_view value : {"0", "-1", "NaN", "Infinity", "1e999", "", " ", "9223372036854775808", "18446744073709551616",
                                   "-9223372036854775808", "999999999999999999999Ei", "0x7f", "unlimited", "max", "1;2"})
      expect_refused({body("", R"({"uri":"host"})", R"(["a"])", cat("{\"", name, "\":\"", value, "\"}")), kValue, kParameter,
                      cat("resourceLimits.", name)});
  }
  expect_refused({body("", R"({"uri":"host"})", R"(["a"])", R"({"gpu":"1"})"), kValue, kParameter, "resourceLimits.gpu"});
}

TEST(ParseCreate, RefusesWhatIsNotAnImageReference) {
  for (std::string_view image : {"-v", "--privileged", "file:///etc/passwd", "/etc/passwd", "../../etc", "a/../b", "a b", "$(id)", "a;b",
                                 "http://x/y", "h\\u0000st", "h\\nst", "\\u00e9", ":latest", "@sha256"})
    expect_refused({body("", cat(R"({"uri":")", image, "\"}")), kValue, kParameter, "image.uri"});
  expect_refused({body("", cat(R"({"uri":")", std::string(513, 'a'), "\"}")), kValue, kParameter, "image.uri"});
  for (std::string_view image : {"host", "debian:12", "python:3.11-slim", "registry.example:5000/a/b:c", "sha256:abc", "a@sha256:0123"})
    EXPECT_TRUE(parse_create(body("", cat(R"({"uri":")", image, "\"}")), kDefaults)) << image;
}

TEST(ParseCreate, CountsEnvironmentVariables) {
  auto with = [](std::size_t n) {
    std::string env;
    for (std::size_t i = 0; i < n; ++i) env += cat(i ? "," : "", "\"V", i, "\":\"x\"");
    return body(cat("\"env\":{", env, "}"));
  };
  EXPECT_TRUE(parse_create(with(kMaxEnvEntries), kDefaults));
  expect_refused({with(kMaxEnvEntries + 1), kValue, kParameter, "env"});
  expect_refused({with(10'000), kValue, kParameter, "env"});
}

TEST(ParseCreate, ChecksInTheOrderClientsMayRelyOn) {
  // extension values, pool, snapshot, entrypoint, metadata, platform, timeout, network, volumes.
  const std::string_view bad_metadata = R"("metadata":{"-":"x"})";
  expect_refused({body(cat(R"("extensions":{"access.renew.extend.seconds":"1","poolRef":"p"},)", bad_metadata)), kValue, kParameter,
                  "extensions.access.renew.extend.seconds"});
  expect_refused(
      {body(cat(R"("extensions":{"poolRef":"p"},)", bad_metadata)), kValue, "SANDBOX::UNSUPPORTED_POOL_REF", "extensions.poolRef"});
  expect_refused({body(bad_metadata, R"({"uri":"host"})", R"([""])"), kValue, "DOCKER::INVALID_ENTRYPOINT", "entrypoint"});
  expect_refused(
      {body(cat(bad_metadata, R"(,"platform":{"os":"windows","arch":"amd64"})")), kValue, "SANDBOX::INVALID_METADATA_LABEL", "metadata.-"});
  expect_refused({body(R"("platform":{"os":"windows","arch":"amd64"},"timeout":1e300)"), kValue, kParameter, "platform.os"});
  expect_refused({body(R"("timeout":1e300,"networkPolicy":{"defaultAction":"allow"})"), kValue, kParameter, "timeout"});
  expect_refused({body(R"("networkPolicy":{"defaultAction":"allow"},"volumes":[{}])"), kValue, kParameter, "networkPolicy"});
}

TEST(ParseCreate, AppliesTheOperatorsCap) {
  CreateDefaults capped = kDefaults;
  capped.max_timeout_seconds = 600;
  EXPECT_TRUE(parse_create(body(R"("timeout":600)"), capped));
  expect_refused({body(R"("timeout":601)"), kValue, kParameter, "timeout"}, capped);
  expect_refused({body(), kValue, kParameter, "timeout"}, capped);
  EXPECT_TRUE(parse_create(body(R"("timeout":60.0)"), capped));
}

TEST(ParseCreate, AcceptsNetworkPoliciesThatLetNothingOut) {
  for (std::string_view policy :
       {"{}", R"({"defaultAction":"deny"})", R"({"egress":[]})", R"({"defaultAction":"deny","egress":[{"action":"deny","target":"*"}]})"})
    EXPECT_TRUE(parse_create(body(cat("\"networkPolicy\":", policy)), kDefaults)) << policy;
  EXPECT_TRUE(parse_create(body(R"("credentialProxy":{"enabled":false})"), kDefaults));
}

TEST(ParseCreate, AppliesExtensionsAndKeepsStrangeOnes) {
  auto spec = parse_create(
      body(
          R"("secureAccess":true,"extensions":{"opensandbox.mode":"root","opensandbox.syscalls":"minimal","opensandbox.root":"rw","opensandbox.pids":"64",
      "opensandbox.disk":"1Gi","access.renew.extend.seconds":"300","opensandbox.extensions.note":"kept","vendor":"kept","poolRef":" "})"),
      kDefaults);
  ASSERT_TRUE(spec) << spec.error().what();
  EXPECT_EQ(spec->policy, (Policy{UserMode::root, SyscallProfile::minimal, RootMode::writable}));
  EXPECT_EQ(spec->limits.pids, 64u);
  EXPECT_EQ(spec->limits.disk_bytes, 1ull << 30);
  EXPECT_EQ(spec->extensions.at("vendor"), "kept");
  EXPECT_EQ(spec->extensions.at("opensandbox.extensions.note"), "kept");
  EXPECT_TRUE(spec->secure_access);
}

TEST(ParseCreate, SuggestsTheExtensionThatWasMeant) {
  auto spec = parse_create(body(R"("extensions":{"opensandbox.syscall":"minimal"})"), kDefaults);
  ASSERT_FALSE(spec);
  EXPECT_NE(spec.error().hint().find("opensandbox.syscalls"), std::string::npos);
}

TEST(ParseCreate, SplitsASingleEntrypointWithSpaces) {
  auto entrypoint = [](std::string_view json) { return parse_create(body("", R"({"uri":"host"})", json), kDefaults)->entrypoint; };
  using Words = std::vector<std::string>;
  EXPECT_EQ(entrypoint(R"(["tail -f /dev/null"])"), (Words{"tail", "-f", "/dev/null"}));
  EXPECT_EQ(entrypoint(R"(["sh -c 'echo \"a b\"'"])"), (Words{"sh", "-c", "echo \"a b\""}));
  EXPECT_EQ(entrypoint(R"(["sleep"])"), (Words{"sleep"}));
  EXPECT_EQ(entrypoint(R"(["sh","-c","a b"])"), (Words{"sh", "-c", "a b"}));
  EXPECT_EQ(entrypoint(R"(["sh",""])"), (Words{"sh", ""}));
}

TEST(SplitWords, QuotesAsAShellDoes) {
  struct Row {
    std::string_view line;
    std::vector<std::string> words;
  };
  const Row rows[] = {
      {"", {}},
      {"  \t ", {}},
      {"a  b\tc\nd", {"a", "b", "c", "d"}},
      {R"('a b'c"d e")", {"a bcd e"}},
      {R"('' "")", {"", ""}},
      {R"(a\ b \\ \')", {"a b", "\\", "'"}},
      {R"("a\"b\$c\d")", {"a\"b$c\\d"}},
      {R"('a\b"c')", {"a\\b\"c"}},
      {"$HOME `id` *", {"$HOME", "`id`", "*"}},
  };
  for (const auto& row : rows) {
    auto words = split_words(row.line);
    ASSERT_TRUE(words) << row.line;
    EXPECT_EQ(*words, row.words) << row.line;
  }
  for (std::string_view line : {"'", "\"", "a 'b", "a\\", "\"a\\\""}) EXPECT_FALSE(split_words(line)) << line;
}

}  // namespace
}  // namespace osb
