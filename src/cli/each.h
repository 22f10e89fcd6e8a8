// Doing one thing to several named objects: each failure is told, the others still get their turn.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/api.h"
#include "cli/spec.h"

namespace osb::cli {

// `act` returns what to print for a name. With -o json the prints are one list at the end, otherwise a line each.
// Exit status 0, or 1 after a failure; a wrong key ends it at once.
Result<int> for_each_name(const Args& args, const std::vector<std::string>& names,
                          const std::function<Result<std::string>(const std::string& name)>& act);

// The same for sandboxes: names are resolved, ids are printed.
Result<int> for_each_sandbox(const Args& args, Api& api, const std::vector<std::string>& names,
                             const std::function<Result<>(const std::string& id)>& act);

}  // namespace osb::cli
