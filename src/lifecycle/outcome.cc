#include "lifecycle/outcome.h"

#include "base/text.h"

namespace osb::lifecycle {
namespace {

Outcome exited_with(int code) {
  if (code == 0) return {State::terminated, "CONTAINER_EXITED", "The sandbox's first program ended normally (exit code 0)."};
  return {State::failed, "CONTAINER_EXITED_ERROR", cat("The sandbox's first program ended with exit code ", code, ".")};
}

}  // namespace

std::string_view name_of(runtime::EndCause cause) {
  switch (cause) {
    case runtime::EndCause::unknown: return "unknown";
    case runtime::EndCause::exited: return "exited";
    case runtime::EndCause::signalled: return "signalled";
    case runtime::EndCause::out_of_memory: return "out_of_memory";
    case runtime::EndCause::expired: return "expired";
    case runtime::EndCause::destroyed: return "destroyed";
  }
  return "unknown";
}

Outcome outcome_of(const runtime::Ended& ended, const Limits& limits) {
  switch (ended.cause) {
    case runtime::EndCause::exited: return exited_with(ended.status);
    case runtime::EndCause::signalled:
      return {State::failed, "CONTAINER_EXITED_ERROR",
              cat("The sandbox was ended by signal ", ended.status, " (exit code ", 128 + ended.status, ").")};
    case runtime::EndCause::out_of_memory:
      return {State::failed, "OOMKilled",
              cat("The sandbox used up its memory limit of ", limits.memory_bytes >> 20,
                  " MiB and was ended. Create it with a larger resourceLimits.memory or let the program use less.")};
    case runtime::EndCause::destroyed: return {State::failed, "SANDBOX_LOST", "The sandbox was destroyed from outside this server."};
    case runtime::EndCause::expired: return {State::terminated, "SANDBOX_EXPIRED", "The sandbox reached its expiry."};
    case runtime::EndCause::unknown: break;
  }
  return {State::failed, "CONTAINER_STATE_UNKNOWN", "The runtime lost sight of the sandbox; how it ended is not known."};
}

}  // namespace osb::lifecycle
