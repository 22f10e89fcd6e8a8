#include "cli/create.h"

#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/remote_command.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

constexpr std::chrono::seconds kUsualLifetime{3600};
constexpr std::chrono::seconds kShortest{60};

constexpr std::array kOptions{
    kImageOption,
    OptionSpec{"-e,--env", "K=V", "a variable every command in it sees", true},
    kMemoryOption,
    kCpusOption,
    kPidsOption,
    kDiskOption,
    kSnapshotOption,
    kVolumeOption,
    OptionSpec{"-t,--timeout", "DURATION", "how long it lives, 60s at least (default 1h); none = until somebody kills it"},
    kModeOption,
    kSyscallsOption,
    kWritableOption,
    kNameOption,
    kMetadataOption,
    OptionSpec{"--idempotency-key", "KEY", "asking again with the same key and options within a day gives the same sandbox"},
    kOutputOption,
    kHostOption,
    kKeyOption,
    kKeyFileOption,
};

Result<int> create(const Args& args) {
  TRY(auto request, read_create_options(args));
  TRY(auto api, find_daemon(args));
  TRY(auto sandbox, api.create(to_json(request), args.get("idempotency-key")));
  CHECK_OK(print(wants_json(args) ? pretty(sandbox) : cat(text_of(sandbox, "id"), "\n")));
  return kExitOk;
}

}  // namespace

Result<SandboxRequest> read_create_options(const Args& args) {
  TRY(auto out, read_sandbox_request(args));
  TRY(out.env, parse_env(args.all("env")));
  if (!args.words.empty()) out.entrypoint = args.words;
  out.lifetime = kUsualLifetime;
  auto text = args.get("timeout");
  if (text == "none") {
    out.lifetime.reset();
  } else if (!text.empty()) {
    auto span = parse_duration(text);
    if (!span) return usage_error(cat("--timeout ", text, ": ", span.error().what()), span.error().hint());
    out.lifetime = std::chrono::ceil<std::chrono::seconds>(*span);
    if (*out.lifetime < kShortest) return usage_error("--timeout: a sandbox lives 60 seconds at least");
  }
  return out;
}

constinit const CommandSpec kCreate{
    .name = "create",
    .also = {},
    .summary = "make a sandbox and print its id",
    .usage = "[options] [-- CMD [ARG...]]",
    .details =
        "The sandbox lives until its time is over or somebody kills it. With a command it lives as long as the command does;\n"
        "`opensandbox logs ID` shows what that command says.",
    .examples =
        "id=$(opensandbox create --name build --memory 1Gi)\n"
        "opensandbox exec $id make\n"
        "opensandbox create --timeout 2h -- python3 -m http.server 8000",
    .options = kOptions,
    .operand = Operand::program,
    .carries_command = true,
    .command_is_optional = true,
    .main = create,
};

}  // namespace osb::cli
