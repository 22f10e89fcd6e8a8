// A command in a sandbox: what run and exec have in common.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/api.h"
#include "cli/session.h"
#include "cli/spec.h"
#include "model/sandbox.h"

namespace osb::cli {

struct RemoteCommand {
  std::vector<std::string> argv;
  StringMap env;
  std::string directory;  // "" = the sandbox's own
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<Millis> timeout;
};

// "K=V", or "K" for the value it has here. Names are what a shell accepts as a name.
Result<StringMap> parse_env(const std::vector<std::string>& items);
// JSON cannot hold every byte string; a word that is not UTF-8 is refused rather than changed.
Result<std::string> exec_body(const RemoteCommand& command, bool has_input);

// Opens the way, carries the command, says on stderr what its exit status cannot say. `prepare` may set a tick.
Result<int> carry(Api& api, std::string_view id, const RemoteCommand& command, Signals& signals,
                  const std::function<void(Session&)>& prepare = {});

}  // namespace osb::cli
