// Whole files of the sandbox, read by pid 1: never blocks on a fifo or a device, never past `limit`.
#pragma once
#include <string>

#include "base/result.h"

namespace osb::execd {

// The first `limit` bytes of a regular file (kernel files count as regular).
Result<std::string> read_small_file(const std::string& path, std::size_t limit);
Result<std::string> read_all_of(int fd, std::size_t limit);

}  // namespace osb::execd
