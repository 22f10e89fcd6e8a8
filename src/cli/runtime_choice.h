// --runtime and --workspace: what a sandbox of one's own is made of, and what that does not isolate.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/api.h"
#include "cli/spec.h"

namespace osb::cli {

inline constexpr OptionSpec kRuntimeOption{"--runtime", "RUNTIME", "what makes the sandbox: native (root) or process (no root needed)",
                                           false, "native|process|subprocess"};
inline constexpr OptionSpec kWorkspaceOption{"--workspace", "DIR", "a directory of this host as /workspace (with --runtime process)"};

// What the runtime process does not isolate, a line a fact; docs/runtimes.md has the reasons.
struct Gap {
  std::string_view of, says;
};
inline constexpr std::array kGapsOfProcess{
    Gap{"memory", "a wall around each process only; of all together it is watched, so a fast one may have more for a moment"},
    Gap{"processor", "not limited; its processes have a lower priority (nice 5)"},
    Gap{"user", "to the kernel its processes are yours: the same user and groups, the same quotas"},
    Gap{"files", "kept in memory; a directory given as the workspace has no quota, and what is written there stays"},
    Gap{"programs", "those below /usr are this host's own, with their file locks; the kernel is shared, as with every container"},
};

struct WantedRuntime {
  std::string name;       // "" = whatever is there
  std::string workspace;  // absolute; "" = none
};
Result<WantedRuntime> read_wanted_runtime(const Args& args);

// Of a daemon, as it says.
Result<std::string> runtime_of(Api& api);

}  // namespace osb::cli
