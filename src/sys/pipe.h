// A pipe(2) as a pair of owners, both ends close-on-exec.
#pragma once
#include "base/fd.h"
#include "base/result.h"

namespace osb::sys {

// `flags` of pipe2(2) beside O_CLOEXEC. Errc::exhausted: there is nothing else it fails for.
Result<Pipe> make_pipe(int flags = 0);

}  // namespace osb::sys
