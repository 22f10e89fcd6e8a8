#include <array>
#include <boost/json.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/live.h"
#include "cli/terminal.h"
#include "cli/usage_rows.h"

namespace osb::cli {
namespace {

constexpr std::array kOptions{
    OptionSpec{"--no-stream", "", "print once, also on a terminal"},
    OptionSpec{"--json", "", "the same as -o json"},
    kOutputOption,
    kHostOption,
    kKeyOption,
    kKeyFileOption,
};

std::string as_json(const std::vector<UsageRow>& rows) {
  boost::json::array all;
  for (const auto& row : rows) all.push_back(row.stats);
  return pretty(all);
}

Result<int> stats(const Args& args) {
  TRY(auto api, find_daemon(args));
  bool json = args.has("json") || wants_json(args);
  return show_live(json || args.has("no-stream"), [&]() -> Result<std::string> {
    TRY(auto rows, read_usage(api, args.operands));
    return json ? as_json(rows) : usage_table(rows);
  });
}

}  // namespace

constinit const CommandSpec kStats{
    .name = "stats",
    .also = {},
    .summary = "show what sandboxes use: processor, memory, disk, processes, network",
    .usage = "[options] [ID...]",
    .details =
        "Of all sandboxes that have processes, or of those named. On a terminal it is drawn again every second until ^C.\n"
        "CPU is the share of what the sandbox's limit allows, since somebody last looked.",
    .examples = "opensandbox stats\nopensandbox stats --no-stream 7k2\nopensandbox stats --json | jq '.[].memory.usedBytes'",
    .options = kOptions,
    .operand = Operand::sandbox,
    .max_operands = 1000,
    .main = stats,
};

}  // namespace osb::cli
