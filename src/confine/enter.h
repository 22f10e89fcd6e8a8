// The way into a sandbox of the `process` runtime: what the new process does between clone3 and execd, as one ordered list of steps.
#pragma once
#include "confine/plan.h"

namespace osb::confine {

// The new process has its namespaces and every capability in its own user namespace, which are worth nothing outside of it. Becomes
// execd behind all of its walls, or reports the failed step on plan.base.report and exits with 125. There is no warning level.
[[noreturn]] void enter(const Plan& plan);

}  // namespace osb::confine
