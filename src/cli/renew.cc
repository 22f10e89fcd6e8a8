#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

constexpr std::array kOptions{OptionSpec{"-t,--timeout", "DURATION", "another way to give the duration"}, kOutputOption, kHostOption,
                              kKeyOption, kKeyFileOption};

Result<int> renew(const Args& args) {
  auto text = args.operands.size() > 1 ? args.operands[1] : args.get("timeout");
  if (text.empty()) return usage_error("renew needs a duration", "opensandbox renew ID 30m");
  auto span = parse_duration(text);
  if (!span) return usage_error(span.error().what(), span.error().hint());
  TRY(auto api, find_daemon(args));
  TRY(auto id, api.resolve(args.operands[0]));
  TRY(auto until, api.renew(id, *span));
  if (wants_json(args))
    CHECK_OK(print(pretty(boost::json::object{{"id", id}, {"expiresAt", until}})));
  else
    CHECK_OK(print(cat(until, "\n")));
  return kExitOk;
}

}  // namespace

constinit const CommandSpec kRenew{
    .name = "renew",
    .also = {},
    .summary = "let a sandbox live for so long from now",
    .usage = "[options] ID DURATION",
    .details = "Prints when it will end now.",
    .examples = "opensandbox renew 7k2 30m\nopensandbox renew 7k2 1h30m",
    .options = kOptions,
    .operand = Operand::sandbox,
    .min_operands = 1,
    .max_operands = 2,
    .main = renew,
};

}  // namespace osb::cli
