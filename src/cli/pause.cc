#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/each.h"
#include "cli/find_daemon.h"

namespace osb::cli {
namespace {

constexpr std::array kOptions{kOutputOption, kHostOption, kKeyOption, kKeyFileOption};

Result<int> tell_each(const Args& args, std::string_view verb) {
  TRY(auto api, find_daemon(args));
  return for_each_sandbox(args, api, args.operands, [&](const std::string& id) -> Result<> {
    auto reply = api.call("POST", cat("/v1/sandboxes/", id, "/", verb));
    if (!reply) return std::move(reply).error();
    return Ok{};
  });
}

Result<int> pause(const Args& args) { return tell_each(args, "pause"); }
Result<int> resume(const Args& args) { return tell_each(args, "resume"); }

}  // namespace

constinit const CommandSpec kPause{
    .name = "pause",
    .also = {},
    .summary = "freeze every process of a sandbox",
    .usage = "[options] ID...",
    .details = "Memory is kept, processor time is not used. The time the sandbox has left goes on.",
    .examples = "opensandbox pause 7k2",
    .options = kOptions,
    .operand = Operand::sandbox,
    .min_operands = 1,
    .max_operands = 1000,
    .main = pause,
};

constinit const CommandSpec kResume{
    .name = "resume",
    .also = {},
    .summary = "let a paused sandbox go on",
    .usage = "[options] ID...",
    .details = {},
    .examples = "opensandbox resume 7k2",
    .options = kOptions,
    .operand = Operand::sandbox,
    .min_operands = 1,
    .max_operands = 1000,
    .main = resume,
};

}  // namespace osb::cli
