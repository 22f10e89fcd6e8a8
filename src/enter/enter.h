// The way into a sandbox: what the new process does between clone3 and execd, as one ordered list of steps.
#pragma once
#include "enter/plan.h"

namespace osb::enter {

// The descriptors execd starts with, by number; 0, 1 and 2 are /dev/null and nothing else is open.
inline constexpr int kListenerFd = 3;
inline constexpr int kSetupFd = 4;
inline constexpr int kReportFd = 5;
inline constexpr int kOomCounterFd = 6;

// Waits on plan.rest and puts the plan that came from there in the place of the first; false: none will come.
using AwaitRest = bool (*)(EnterPlan& plan);

// Returns inside the sandbox, with all of its walls around the caller; or reports the failed step on plan.report and exits with 125.
void enter(EnterPlan& plan, AwaitRest await_rest);

}  // namespace osb::enter
