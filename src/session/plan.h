// From what is asked to what is made: pure functions, errors that name the field.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/limits.h"
#include "model/policy.h"
#include "model/sandbox.h"
#include "session/values.h"

namespace osb::session {

// What holds where a request is silent, and what the operator lets it say.
struct Rules {
  std::string runtime = "native";  // the one this daemon runs
  Limits limits;
  Policy policy;
  std::int64_t timeout_seconds = 3600;
  std::optional<std::int64_t> max_timeout_seconds;
  bool allow_permissive = false;
};

// Sandboxes of sessions carry this extension; the value says how they end. Clients of the lifecycle API cannot set it.
inline constexpr std::string_view kMark = "opensandbox.session";
inline constexpr std::string_view kEphemeral = "ephemeral";  // also when nobody has used it for a while
inline constexpr std::string_view kKept = "kept";            // by delete or deadline only
inline constexpr std::string_view kRun = "run";              // with the request that made it

Error invalid(std::string_view field, std::string_view why);

Result<SandboxSpec> plan(const CreateRequest& request, const Rules& rules);
Result<> check(const ExecRequest& request);
Result<> check(const TerminalRequest& request);
Result<> check_path(const std::string& path);

// Equal for equal requests, for idempotency keys.
std::string fingerprint(const CreateRequest& request);
std::string fingerprint(const CreateRequest& session, const ExecRequest& request);

}  // namespace osb::session
