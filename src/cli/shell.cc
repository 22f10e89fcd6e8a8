#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exec.h"
#include "cli/find_daemon.h"
#include "cli/run.h"
#include "cli/runtime_choice.h"

namespace osb::cli {
namespace {

constexpr std::array kOptions{
    OptionSpec{"-e,--env", "K=V", "a variable; K alone passes the value it has here", true},
    OptionSpec{"-w,--workdir", "DIR", "where the shell starts (default /workspace)"},
    OptionSpec{"-u,--user", "UID[:GID]", "who runs it inside: a number, root or user"},
    kImageOption,
    kMemoryOption,
    kCpusOption,
    kPidsOption,
    kDiskOption,
    kModeOption,
    kSyscallsOption,
    kWritableOption,
    OptionSpec{"--keep", "", "leave a new sandbox for an hour; its id goes to stderr"},
    kNameOption,
    kMetadataOption,
    kRuntimeOption,
    kWorkspaceOption,
    kHostOption,
    kKeyOption,
    kKeyFileOption,
};

// What describes a sandbox that is to be made says nothing about one that is there.
Result<> check_options(const Args& args) {
  if (args.operands.empty()) return Ok{};
  for (const char* name :
       {"image", "memory", "cpus", "pids", "disk", "mode", "syscalls", "rw", "keep", "name", "metadata", "runtime", "workspace"})
    if (args.has(name)) return usage_error(cat("--", name, " is for a new sandbox"), "leave out the id to make one");
  return Ok{};
}

Result<int> shell(const Args& args) {
  CHECK_OK(check_options(args));
  Args full = args;
  full.words = {"sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh"};
  full.add("tty", "true");
  TRY(auto command, read_exec_options(full));
  if (args.operands.empty()) {
    TRY(auto options, read_run_options(full));
    options.command = std::move(command);
    return run_once(full, std::move(options));
  }
  TRY(auto api, find_daemon(args));
  TRY(auto id, api.resolve(args.operands[0]));
  Signals signals;
  return carry(api, id, command, signals);
}

}  // namespace

constinit const CommandSpec kShell{
    .name = "shell",
    .also = {},
    .summary = "a shell at your terminal, in a new sandbox or one that is there",
    .usage = "[options] [ID]",
    .details =
        "bash where the sandbox has it, else sh. Without an ID a sandbox is made for the shell and thrown away after it, as\n"
        "with run -it. The exit status is the shell's.",
    .examples =
        "opensandbox shell\n"
        "opensandbox shell --memory 1Gi --rw\n"
        "opensandbox shell -u root 7k2",
    .options = kOptions,
    .operand = Operand::sandbox,
    .max_operands = 1,
    .main = shell,
};

}  // namespace osb::cli
