// The processes of the sandbox as /proc tells them, for people: bounded, and of a moment that is already over.
#pragma once
#include <string>

#include "async/task.h"

namespace osb::execd::metrics {

inline constexpr std::size_t kMostProcesses = 1024;

// {"processes":[{"pid","parent","state","user","threads","cpuMillis","memoryBytes","command"}],"truncated":false}
Task<std::string> processes_json();

}  // namespace osb::execd::metrics
