#include "daemon/version.h"

#include <sys/utsname.h>

#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

constexpr std::array kOptions{kOutputOption};

Result<int> show_version(const Args& args) {
  utsname host{};
  ::uname(&host);
  if (wants_json(args)) {
    CHECK_OK(print(pretty(boost::json::object{{"version", daemon::kVersion}, {"kernel", host.release}, {"arch", host.machine}})));
  } else {
    CHECK_OK(print(cat("opensandbox ", daemon::kVersion, " (", host.machine, ")\n")));
  }
  return kExitOk;
}

}  // namespace

constinit const CommandSpec kVersion{
    .name = "version",
    .also = {},
    .summary = "show the version",
    .usage = {},
    .details = {},
    .examples = "opensandbox version -o json",
    .options = kOptions,
    .main = show_version,
};

}  // namespace osb::cli
