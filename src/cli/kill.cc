#include <array>

#include "cli/commands.h"
#include "cli/each.h"
#include "cli/find_daemon.h"

namespace osb::cli {
namespace {

constexpr std::array kOptions{OptionSpec{"--all", "", "every sandbox this key can see"}, kOutputOption, kHostOption, kKeyOption,
                              kKeyFileOption};
constexpr std::array<std::string_view, 2> kAlso{"rm", "delete"};

Result<int> kill_sandboxes(const Args& args) {
  if (args.operands.empty() && !args.has("all"))
    return usage_error("kill needs the id of a sandbox", "`opensandbox ls` lists them; --all means all");
  TRY(auto api, find_daemon(args));
  auto names = args.operands;
  if (args.has("all")) {
    TRY(auto sandboxes, api.list({}));
    for (const auto& sandbox : sandboxes) names.push_back(text_of(sandbox, "id"));
  }
  return for_each_sandbox(args, api, names, [&](const std::string& id) { return api.remove(id); });
}

}  // namespace

constinit const CommandSpec kKill{
    .name = "kill",
    .also = kAlso,
    .summary = "end sandboxes and remove everything of them",
    .usage = "[options] ID... | --all",
    .details = "Every process is killed, every file is gone. Prints the id of each.",
    .examples = "opensandbox kill 7k2 9xq\nopensandbox kill --all",
    .options = kOptions,
    .operand = Operand::sandbox,
    .max_operands = 100000,
    .main = kill_sandboxes,
};

}  // namespace osb::cli
