#include "cli/commands.h"

#include <algorithm>
#include <array>
#include <deque>

#include "base/text.h"
#include "daemon/config.h"

namespace osb::cli {
namespace {

constexpr std::array kEverywhere{
    OptionSpec{"-h,--help", "", "show this text"},
    OptionSpec{"--no-color", "", "never colour (also NO_COLOR)"},
};

const std::array kTable{
    &kRun,
    &kShell,
    &kExec,
    &kCreate,
    &kList,
    &kInspect,
    &kLogs,
    &kEvents,
    &kStats,
    &kTop,
    &kPause,
    &kResume,
    &kRenew,
    &kKill,
    &kImageList,
    &kImagePull,
    &kImageImport,
    &kImageBuild,
    &kImageInspect,
    &kImageRemove,
    &kImagePrune,
    &kSnapshotCreate,
    &kSnapshotList,
    &kSnapshotInspect,
    &kSnapshotRemove,
    &kVolumeCreate,
    &kVolumeList,
    &kVolumeRemove,
    &kPoolCreate,
    &kPoolList,
    &kPoolScale,
    &kPoolDrain,
    &kPoolRemove,
    &kPoolStats,
    &kCopy,
    &kFilesList,
    &kFilesCat,
    &kFilesRemove,
    &kFilesMakeDirectory,
    &kFilesMove,
    &kFilesStat,
    &kApprovalsList,
    &kApprovalsAllow,
    &kApprovalsDeny,
    &kApprovalsWatch,
    &kServe,
    &kDaemonStart,
    &kDaemonStop,
    &kDaemonStatus,
    &kDaemonReload,
    &kDoctor,
    &kConfigCheck,
    &kCompletion,
    &kVersion,
    &kHelp,
};

// The daemon's own table, as options. Built when a command asks for it; the texts live as long as the program.
const std::vector<OptionSpec>& config_options() {
  static std::deque<std::string> names;
  static const std::vector<OptionSpec> kOptions = [] {
    std::vector<OptionSpec> out;
    for (const auto& key : daemon::options()) {
      if (key.flag.empty()) continue;
      bool is_switch = key.value.starts_with("true") || key.value.starts_with("bool");
      OptionSpec option{names.emplace_back(cat("--", key.flag)), is_switch ? std::string_view{} : "VALUE",
                        names.emplace_back(cat(key.help, " (", key.value, ")"))};
      option.negatable = is_switch;
      out.push_back(option);
    }
    return out;
  }();
  return kOptions;
}

bool is_named(const CommandSpec& command, std::string_view name) {
  return command.name == name || std::ranges::find(command.also, name) != command.also.end();
}

const CommandSpec* named(std::string_view name) {
  auto found = std::ranges::find_if(kTable, [&](const CommandSpec* command) { return is_named(*command, name); });
  return found == kTable.end() ? nullptr : *found;
}

std::vector<std::string_view> members_of(std::string_view group) {
  std::vector<std::string_view> out;
  for (const CommandSpec* command : kTable)
    if (command->name.starts_with(group) && command->name.substr(group.size()).starts_with(' ')) out.push_back(command->name);
  return out;
}

std::string joined(const std::vector<std::string_view>& words, std::string_view glue) {
  std::string out;
  for (auto word : words) out += out.empty() ? std::string(word) : cat(glue, word);
  return out;
}

Error unknown(std::string_view word, std::string_view group) {
  std::vector<std::string_view> names =
      group.empty() ? std::vector<std::string_view>{"image", "snapshot", "volume", "pool", "approvals", "files", "daemon", "config"}
                    : members_of(group);
  for (const CommandSpec* command : kTable) {
    if (!group.empty() || command->hidden || command->name.contains(' ')) continue;
    names.push_back(command->name);
    names.insert(names.end(), command->also.begin(), command->also.end());
  }
  auto near = nearest(word, names);
  std::string hint = near ? cat("did you mean '", *near, "'?") : std::string("`opensandbox help` lists the commands");
  return usage_error(cat("unknown command '", word, "'"), hint);
}

}  // namespace

std::span<const CommandSpec* const> commands() { return kTable; }

std::vector<OptionSpec> options_of(const CommandSpec& command) {
  std::vector<OptionSpec> out(command.options.begin(), command.options.end());
  if (command.config_flags) out.insert(out.end(), config_options().begin(), config_options().end());
  out.insert(out.end(), kEverywhere.begin(), kEverywhere.end());
  return out;
}

Result<Found> find_command(std::span<const std::string> words) {
  if (words.empty()) return usage_error("no command given", "`opensandbox help` lists the commands");
  if (words[0] == "sandbox" && words.size() > 1) {
    if (const CommandSpec* command = named(words[1])) return Found{command, 2};
  }
  if (auto members = members_of(words[0]); !members.empty()) {
    if (const CommandSpec* alone = words.size() == 1 || words[1].starts_with('-') ? named(words[0]) : nullptr) return Found{alone, 1};
    if (words.size() == 1 || words[1].starts_with('-'))
      return usage_error(cat("'", words[0], "' needs one more word"), joined(members, ", "));
    auto both = cat(words[0], " ", words[1]);
    if (const CommandSpec* command = named(both)) return Found{command, 2};
    return unknown(both, words[0]);
  }
  if (const CommandSpec* command = named(words[0])) return Found{command, 1};
  return unknown(words[0], {});
}

}  // namespace osb::cli
