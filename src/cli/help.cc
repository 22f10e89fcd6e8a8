#include "cli/help.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

struct Section {
  std::string_view title;
  std::span<const CommandSpec* const> rows;
};

constexpr std::array<const CommandSpec*, 14> kSandboxes{&kRun,    &kShell, &kExec, &kCreate, &kList,   &kInspect, &kLogs,
                                                        &kEvents, &kStats, &kTop,  &kPause,  &kResume, &kRenew,   &kKill};
constexpr std::array<const CommandSpec*, 7> kImages{&kImageList,    &kImagePull,   &kImageImport, &kImageBuild,
                                                    &kImageInspect, &kImageRemove, &kImagePrune};
constexpr std::array<const CommandSpec*, 7> kFiles{&kCopy,      &kFilesList, &kFilesCat, &kFilesRemove, &kFilesMakeDirectory,
                                                   &kFilesMove, &kFilesStat};
constexpr std::array<const CommandSpec*, 7> kKept{&kSnapshotCreate, &kSnapshotList, &kSnapshotInspect, &kSnapshotRemove,
                                                  &kVolumeCreate,   &kVolumeList,   &kVolumeRemove};
constexpr std::array<const CommandSpec*, 6> kPools{&kPoolCreate, &kPoolList, &kPoolScale, &kPoolDrain, &kPoolRemove, &kPoolStats};
constexpr std::array<const CommandSpec*, 4> kApprovals{&kApprovalsList, &kApprovalsAllow, &kApprovalsDeny, &kApprovalsWatch};
constexpr std::array<const CommandSpec*, 5> kDaemon{&kServe, &kDaemonStart, &kDaemonStop, &kDaemonStatus, &kDaemonReload};
constexpr std::array<const CommandSpec*, 5> kOthers{&kDoctor, &kConfigCheck, &kCompletion, &kVersion, &kHelp};
constexpr std::array kSections{
    Section{"Sandboxes", kSandboxes}, Section{"Files", kFiles},         Section{"Images", kImages}, Section{"Snapshots and volumes", kKept},
    Section{"Pools", kPools},         Section{"Approvals", kApprovals}, Section{"Daemon", kDaemon}, Section{"Other", kOthers}};

void append_pair(std::string& out, std::string_view left, std::string_view right, std::size_t column) {
  out += cat("  ", left);
  if (left.size() + 2 > column) {
    out += '\n';
    out.append(column + 2, ' ');
  } else {
    out.append(column - left.size(), ' ');
  }
  out += cat(right, "\n");
}

std::string flag_text(const OptionSpec& option) {
  std::string out = option.short_name().empty() ? "    " : cat("-", option.short_name(), ", ");
  out += cat("--", option.long_name());
  if (!option.value.empty()) out += cat(" ", option.value);
  return out;
}

void append_options(std::string& out, const CommandSpec& command) {
  auto options = options_of(command);
  std::erase_if(options, [](const OptionSpec& option) { return option.hidden; });
  std::size_t widest = 0;
  for (const auto& option : options) widest = std::max(widest, flag_text(option).size());
  out += "\nOptions:\n";
  for (const auto& option : options) append_pair(out, flag_text(option), option.help, std::min<std::size_t>(widest + 2, 30));
}

void append_block(std::string& out, std::string_view title, std::string_view text) {
  if (text.empty()) return;
  out += cat("\n", title, "\n");
  for (auto line : split(text, '\n')) out += line.empty() ? "\n" : cat("  ", line, "\n");
}

Result<int> show_help(const Args& args) {
  if (args.operands.empty()) {
    CHECK_OK(print(help_overview()));
    return kExitOk;
  }
  TRY(auto found, find_command(args.operands));
  CHECK_OK(print(help_of(*found.command)));
  return kExitOk;
}

}  // namespace

std::string help_overview() {
  std::string out =
      "opensandbox runs untrusted code in sandboxes: no network, no capabilities, few system calls, limits on everything.\n"
      "\nUsage: opensandbox COMMAND [options]\n";
  for (const Section& section : kSections) {
    out += cat("\n", section.title, ":\n");
    for (const CommandSpec* command : section.rows) append_pair(out, command->name, command->summary, 18);
  }
  out +=
      "\nStart here:\n"
      "  opensandbox doctor                       what this host can isolate, and what to fix\n"
      "  opensandbox run -- python3 -c 'print(1)' one command in a sandbox of its own\n"
      "\n`opensandbox COMMAND --help` tells more, with examples.\n";
  return out;
}

std::string help_of(const CommandSpec& command) {
  std::string out = cat(command.summary, "\n\nUsage: opensandbox ", command.name, command.usage.empty() ? "" : " ", command.usage, "\n");
  for (auto name : command.also) out += cat("Also:  opensandbox ", name, "\n");
  if (!command.details.empty()) out += cat("\n", command.details, "\n");
  append_options(out, command);
  append_block(out, "Examples:", command.examples);
  return out;
}

constinit const CommandSpec kHelp{
    .name = "help",
    .also = {},
    .summary = "show what a command does",
    .usage = "[COMMAND]",
    .details = {},
    .examples = "opensandbox help\nopensandbox help run",
    .options = {},
    .operand = Operand::command,
    .max_operands = 2,
    .main = show_help,
};

}  // namespace osb::cli
