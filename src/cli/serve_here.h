// The daemon in this process. Only the program opensandbox-serve links this file and, with it, the daemon and all its
// libraries: what runs and ends in a millisecond must not load them.
#pragma once
#include "base/result.h"
#include "cli/spec.h"

namespace osb::cli {

Result<int> serve_here(const Args& args);

}  // namespace osb::cli
