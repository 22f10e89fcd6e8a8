// How the end of a sandbox reads: state, reason, message. Pure.
#pragma once
#include <string>

#include "model/limits.h"
#include "model/states.h"
#include "runtime/runtime.h"

namespace osb::lifecycle {

struct Outcome {
  State state = State::failed;
  std::string reason;
  std::string message;
};

Outcome outcome_of(const runtime::Ended& ended, const Limits& limits);
std::string_view name_of(runtime::EndCause cause);

}  // namespace osb::lifecycle
