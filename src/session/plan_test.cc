#include "session/plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/command_policy.h"

namespace osb::session {
namespace {

std::string field_of(const CreateRequest& request, const Rules& rules = {}) {
  auto spec = plan(request, rules);
  return spec ? "" : spec.error().field();
}

TEST(Plan, AnEmptyRequestIsTheConfigurationsSession) {
  Rules rules;
  rules.limits.memory_bytes = 64u << 20;
  rules.timeout_seconds = 7;
  auto spec = plan({}, rules);
  ASSERT_TRUE(spec) << spec.error().what();
  EXPECT_EQ(spec->image, "host");
  EXPECT_EQ(spec->limits.memory_bytes, 64u << 20);
  EXPECT_EQ(spec->timeout_seconds, 7);
  EXPECT_EQ(spec->policy.root, RootMode::read_only);
  EXPECT_TRUE(spec->entrypoint.empty());
  EXPECT_EQ(spec->extensions.find(kMark)->second, kEphemeral);
}

TEST(Plan, TakesWhatIsAskedFor) {
  CreateRequest request;
  request.runtime = "subprocess";
  request.resources = {.memory_mb = 256, .cpu_cores = 0.5, .disk_mb = 100, .pids = 8, .timeout_seconds = 1};
  request.security.syscall_allowlist = "minimal";
  request.security.network_policy = "deny_all";
  request.security.read_only_root = false;
  request.security.command_policy = R"({"rules":[{"program":"rm","action":"deny"}]})";
  request.ephemeral = false;
  auto spec = plan(request, {.runtime = "process", .limits = {}, .policy = {}, .max_timeout_seconds = {}});
  ASSERT_TRUE(spec) << spec.error().what();
  EXPECT_EQ(spec->limits.memory_bytes, 256u << 20);
  EXPECT_EQ(spec->limits.cpu_millis, 500u);
  EXPECT_EQ(spec->limits.disk_bytes, 100u << 20);
  EXPECT_EQ(spec->limits.pids, 8u);
  EXPECT_EQ(spec->timeout_seconds, 1);
  EXPECT_EQ(spec->policy.syscalls, SyscallProfile::minimal);
  EXPECT_EQ(spec->policy.root, RootMode::writable);
  EXPECT_EQ(spec->extensions.find(kMark)->second, kKept);
  EXPECT_TRUE(spec->extensions.contains(kPolicyExtension));
}

TEST(Plan, NumbersAtTheEdgesNeverMeanUnlimited) {
  for (std::uint64_t memory : {std::uint64_t{0}, std::uint64_t{15}, std::uint64_t{1048577}, ~std::uint64_t{0}}) {
    CreateRequest request;
    request.resources.memory_mb = memory;
    EXPECT_EQ(field_of(request), "resources.memory_mb") << memory;
  }
  for (double cores : {0.0, -1.0, 0.001, 1025.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    CreateRequest request;
    request.resources.cpu_cores = cores;
    EXPECT_EQ(field_of(request), "resources.cpu_cores") << cores;
  }
  for (std::int64_t seconds : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max(), std::int64_t{61}}) {
    CreateRequest request;
    request.resources.timeout_seconds = seconds;
    Rules rules;
    rules.max_timeout_seconds = 60;
    EXPECT_EQ(field_of(request, rules), "resources.timeout_seconds") << seconds;
  }
  Rules rules;
  rules.max_timeout_seconds = 60;
  EXPECT_EQ(plan({}, rules)->timeout_seconds, 60) << "the default bends to the cap";
}

TEST(Plan, SaysWhichRuntimeThereIs) {
  CreateRequest request;
  request.runtime = "docker";
  auto spec = plan(request, {});
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code(), "RUNTIME::NOT_AVAILABLE");
  EXPECT_NE(spec.error().what().find("native"), std::string::npos);
}

TEST(Plan, RefusesAnyOtherNetworkThanNone) {
  CreateRequest request;
  request.security.network_policy = "allow_all";
  auto spec = plan(request, {});
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code(), "SECURITY::NETWORK_POLICY_UNSUPPORTED");
  EXPECT_FALSE(spec.error().hint().empty());
}

TEST(Plan, PermissiveNeedsTheOperator) {
  CreateRequest request;
  request.security.syscall_allowlist = "permissive";
  EXPECT_EQ(field_of(request), "security.syscall_allowlist");
  Rules rules;
  rules.allow_permissive = true;
  EXPECT_EQ(field_of(request, rules), "");
}

TEST(Check, ACommandIsExactlyOneThing) {
  ExecRequest line;
  line.command = "true";
  EXPECT_TRUE(check(line));
  line.argv = {"true"};
  EXPECT_FALSE(check(line));
  EXPECT_FALSE(check(ExecRequest{}));
  for (double seconds : {0.0, -1.0, 86401.0, std::nan("")}) {
    ExecRequest late;
    late.command = "true";
    late.timeout_seconds = seconds;
    EXPECT_FALSE(check(late)) << seconds;
  }
  ExecRequest big;
  big.command = "cat";
  big.input = std::string(kMaxInputBytes + 1, 'x');
  EXPECT_EQ(check(big).error().kind(), Errc::too_large);
}

TEST(Fingerprint, DiffersWhereverRequestsDo) {
  CreateRequest a, b;
  EXPECT_EQ(fingerprint(a), fingerprint(b));
  b.resources.cpu_cores = 0.5;
  EXPECT_NE(fingerprint(a), fingerprint(b));
  ExecRequest x, y;
  x.command = y.command = "echo";
  EXPECT_EQ(fingerprint(a, x), fingerprint(a, y));
  y.input = "";
  EXPECT_NE(fingerprint(a, x), fingerprint(a, y));
}

}  // namespace
}  // namespace osb::session
