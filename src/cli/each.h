// Doing one thing to several sandboxes: each failure is told, the others still get their turn.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/api.h"

namespace osb::cli {

// Prints the id of each that worked. Exit status 0, or that of the first failure.
Result<int> for_each_sandbox(Api& api, const std::vector<std::string>& names, const std::function<Result<>(const std::string& id)>& act);

}  // namespace osb::cli
