// --runtime and --workspace: what a sandbox of one's own is made of, and what that does not isolate.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/api.h"
#include "cli/spec.h"

namespace osb::cli {

inline constexpr OptionSpec kRuntimeOption{"--runtime", "RUNTIME", "what makes the sandbox: native (root) or process (no root needed)",
                                           false, "native|process|subprocess"};
inline constexpr OptionSpec kWorkspaceOption{"--workspace", "DIR", "a directory of this host as /workspace (with --runtime process)"};

// One line a fact; docs/runtimes.md has the reasons.
inline constexpr std::string_view kNotIsolatedByProcess =
    "  memory is limited for each process, not for the sandbox; shared and file memory only by the size of its file systems\n"
    "  processor time is not limited; its processes have a lower priority (nice 5)\n"
    "  to the kernel its processes are yours: same user and groups, same quotas\n"
    "  files are kept in memory; a directory given as the workspace has no quota, and what is written there stays\n"
    "  the programs below /usr are this host's own, with their file locks; the kernel is shared, as with every container\n";

struct WantedRuntime {
  std::string name;       // "" = whatever is there
  std::string workspace;  // absolute; "" = none
};
Result<WantedRuntime> read_wanted_runtime(const Args& args);

// Of a daemon, as it says.
Result<std::string> runtime_of(Api& api);

}  // namespace osb::cli
