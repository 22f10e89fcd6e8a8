// The directory of the host that sandboxes of the runtime `process` have as /workspace.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb::runtime {

// The real path; "" stays "". Refused is what is no directory, and whatever holds the user's home as a whole: keys and tokens lie there.
Result<std::string> checked_workspace(const std::string& path);
// The rule, on real paths.
bool holds_home(std::string_view directory, std::string_view home);

}  // namespace osb::runtime
