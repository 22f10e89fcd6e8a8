// A program as a sealed copy in memory: no process, however it got hold of /proc/<pid>/exe, can change what the next sandbox runs.
#pragma once
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace osb::launch {

// large: for a program that divides often (sys/large_segments.h).
enum class Pages { usual, large };
Result<Fd> seal_program(const std::string& path, Pages pages = Pages::usual);
Result<Fd> seal_program(int file, Pages pages);  // from a file that is open: all of it

}  // namespace osb::launch
