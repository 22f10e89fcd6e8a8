#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/sanitise.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

constexpr std::array kOptions{
    OptionSpec{"-s,--scope", "SCOPE", "which side of it (default lifecycle)", false, "all|container|lifecycle|runtime|network|process"},
    kOutputOption,
    kHostOption,
    kKeyOption,
    kKeyFileOption,
};

Result<int> events(const Args& args) {
  TRY(auto api, find_daemon(args));
  TRY(auto id, api.resolve(args.operands[0]));
  TRY(auto object, read_diagnostics(api, id, "events", args.get("scope", "lifecycle")));
  if (wants_json(args)) {
    CHECK_OK(print(pretty(object)));
    return kExitOk;
  }
  std::string out;
  for (auto line : split(text_of(object, "content"), '\n'))
    if (!line.empty()) out += cat(sanitise(line), "\n");
  CHECK_OK(print(out));
  return kExitOk;
}

}  // namespace

constinit const CommandSpec kEvents{
    .name = "events",
    .also = {},
    .summary = "show what happened to a sandbox",
    .usage = "[options] ID",
    .details = "Also of sandboxes that ended, as long as they are listed.",
    .examples = "opensandbox events 7k2\nopensandbox events --scope all 7k2",
    .options = kOptions,
    .operand = Operand::sandbox,
    .min_operands = 1,
    .max_operands = 1,
    .main = events,
};

}  // namespace osb::cli
