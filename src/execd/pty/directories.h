// The working directory of a session, made where it is missing.
#pragma once
#include <string>

#include "base/result.h"
#include "execd/setup.h"

namespace osb::execd {

// `path` is absolute. What is made belongs to the sandbox's user; what is there stays as it is. Links of /proc that lead to
// another process's directories are not followed.
Result<> make_directories(const std::string& path, const Setup& setup);

}  // namespace osb::execd
