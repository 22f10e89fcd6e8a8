#include "cli/each.h"

#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"

namespace osb::cli {

Result<int> for_each_sandbox(Api& api, const std::vector<std::string>& names, const std::function<Result<>(const std::string&)>& act) {
  int status = kExitOk;
  for (const auto& name : names) {
    auto id = api.resolve(name);
    auto done = id ? act(*id) : Result<>(id.error());
    if (done) {
      CHECK_OK(print(cat(*id, "\n")));
      continue;
    }
    // A wrong key is wrong for all of them.
    if (done.error().kind() == Errc::unauthenticated) return std::move(done).error();
    complain(std::move(done).error().in(name));
    status = kExitFailure;
  }
  return status;
}

}  // namespace osb::cli
