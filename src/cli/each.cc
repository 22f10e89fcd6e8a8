#include "cli/each.h"

#include <boost/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"

namespace osb::cli {

Result<int> for_each_name(const Args& args, const std::vector<std::string>& names,
                          const std::function<Result<std::string>(const std::string&)>& act) {
  int status = kExitOk;
  boost::json::array done;
  for (const auto& name : names) {
    auto result = act(name);
    if (!result && result.error().kind() == Errc::unauthenticated) return std::move(result).error();
    if (!result) {
      complain(std::move(result).error().in(name));
      status = kExitFailure;
    } else if (wants_json(args)) {
      done.emplace_back(*result);
    } else {
      CHECK_OK(print(cat(*result, "\n")));
    }
  }
  if (wants_json(args)) CHECK_OK(print(pretty(done)));
  return status;
}

Result<int> for_each_sandbox(const Args& args, Api& api, const std::vector<std::string>& names,
                             const std::function<Result<>(const std::string&)>& act) {
  return for_each_name(args, names, [&](const std::string& name) -> Result<std::string> {
    TRY(auto id, api.resolve(name));
    CHECK_OK(act(id));
    return id;
  });
}

}  // namespace osb::cli
