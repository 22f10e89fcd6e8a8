// The table of commands and how a word finds its row.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/spec.h"

namespace osb::cli {

// In the order of --help. Rows live as long as the program.
std::span<const CommandSpec* const> commands();

// The row's own options and those every command has (--help, --no-color).
std::vector<OptionSpec> options_of(const CommandSpec& command);

struct Found {
  const CommandSpec* command = nullptr;
  std::size_t words = 0;  // how many words the name took
};
// The longest name that matches the front of `words`, aliases and the noun form ("sandbox list") included.
// A word that is nothing is a usage error with the nearest name; a group alone ("image") names its commands.
Result<Found> find_command(std::span<const std::string> words);

// ---- the rows, one file each -------------------------------------------------------------------------------
extern const CommandSpec kRun, kShell, kCreate, kList, kInspect, kExec, kLogs, kEvents, kStats, kTop, kPause, kResume, kRenew, kKill;
extern const CommandSpec kImageList, kImageImport, kImageBuild, kImageRemove, kImagePull, kImageInspect, kImagePrune;
extern const CommandSpec kCopy, kFilesList, kFilesCat, kFilesRemove, kFilesMakeDirectory, kFilesMove, kFilesStat;
extern const CommandSpec kSnapshotCreate, kSnapshotList, kSnapshotInspect, kSnapshotRemove;
extern const CommandSpec kVolumeCreate, kVolumeList, kVolumeRemove;
extern const CommandSpec kPoolCreate, kPoolList, kPoolScale, kPoolDrain, kPoolRemove, kPoolStats;
extern const CommandSpec kApprovalsList, kApprovalsAllow, kApprovalsDeny, kApprovalsWatch;
extern const CommandSpec kServe, kDaemonStart, kDaemonStop, kDaemonStatus, kDaemonReload;
extern const CommandSpec kDoctor, kConfigCheck, kCompletion, kVersion, kHelp;

// ---- options several commands share ------------------------------------------------------------------------
inline constexpr OptionSpec kHostOption{"--host", "ADDRESS", "daemon to use: unix:///path or http://host:port (also OPENSANDBOX_HOST)"};
inline constexpr OptionSpec kKeyOption{"--api-key", "KEY", "key for it (also OPEN_SANDBOX_API_KEY; others can see a key in ps)"};
inline constexpr OptionSpec kKeyFileOption{"--api-key-file", "FILE", "read the key from a file"};
inline constexpr OptionSpec kOutputOption{"-o,--output", "FORMAT", "table (for people) or json (for programs)", false, "table|json"};
inline constexpr OptionSpec kQuietOption{"-q,--quiet", "", "print ids only"};

inline bool wants_json(const Args& args) { return args.get("output") == "json"; }

}  // namespace osb::cli
