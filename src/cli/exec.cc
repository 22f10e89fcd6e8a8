#include "cli/exec.h"

#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/find_daemon.h"

namespace osb::cli {
namespace {

constexpr std::array kOptions{
    OptionSpec{"-e,--env", "K=V", "a variable; K alone passes the value it has here", true},
    OptionSpec{"-w,--workdir", "DIR", "where the command starts"},
    OptionSpec{"-u,--user", "UID[:GID]", "who runs it inside: a number, root or user"},
    kInteractiveOption,
    kTerminalOption,
    OptionSpec{"--timeout", "DURATION", "kill the command after this long; exit status 124"},
    kHostOption,
    kKeyOption,
    kKeyFileOption,
};

std::optional<std::uint32_t> parse_id(std::string_view text) {
  if (text == "root") return 0;
  if (text == "user") return 1000;
  auto number = parse_int<std::uint32_t>(text);
  return number && *number <= 65535 ? number : std::nullopt;
}

Result<int> exec(const Args& args) {
  TRY(auto command, read_exec_options(args));
  TRY(auto api, find_daemon(args));
  TRY(auto id, api.resolve(args.operands[0]));
  Signals signals;
  return carry(api, id, command, signals);
}

}  // namespace

Result<RemoteCommand> read_exec_options(const Args& args) {
  RemoteCommand out;
  out.argv = args.words;
  out.directory = args.get("workdir");
  TRY(out.terminal, wants_terminal(args));
  TRY(out.env, parse_env(args.all("env")));
  if (args.has("user")) {
    auto text = args.get("user");
    auto colon = text.find(':');
    out.uid = parse_id(std::string_view(text).substr(0, colon));
    if (colon != std::string::npos) out.gid = parse_id(std::string_view(text).substr(colon + 1));
    if (!out.uid || (colon != std::string::npos && !out.gid))
      return usage_error(cat("--user ", text, " is nobody"), "write a number from 0 to 65535, root or user, and a group behind a colon");
  }
  if (args.has("timeout")) {
    auto limit = parse_duration(args.get("timeout"));
    if (!limit) return usage_error(cat("--timeout ", args.get("timeout"), ": ", limit.error().what()), limit.error().hint());
    out.timeout = *limit;
  }
  return out;
}

constinit const CommandSpec kExec{
    .name = "exec",
    .also = {},
    .summary = "run a command in a sandbox that is there",
    .usage = "[options] ID CMD [ARG...]",
    .details =
        "Options stand before the id; everything behind it belongs to the command. Streams, signals and exit status pass\n"
        "through as with run. ID may be the beginning of an id, as long as it is unique, or a name.",
    .examples =
        "opensandbox exec 7k2 ls -l /workspace\n"
        "opensandbox exec -it 7k2 bash\n"
        "opensandbox exec -u root -w / 7k2 sh -c 'cat /proc/self/status'\n"
        "opensandbox exec 7k2 python3 - < script.py",
    .options = kOptions,
    .operand = Operand::sandbox,
    .min_operands = 1,
    .max_operands = 1,
    .carries_command = true,
    .main = exec,
};

}  // namespace osb::cli
