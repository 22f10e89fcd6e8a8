// A program as a sealed copy in memory: no process, however it got hold of /proc/<pid>/exe, can change what the next sandbox runs.
#pragma once
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace osb::launch {

Result<Fd> seal_program(const std::string& path);

}  // namespace osb::launch
