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
  bool terminal = false;  // our own terminal becomes the command's
};

// "K=V", or "K" for the value it has here. Names are what a shell accepts as a name.
Result<StringMap> parse_env(const std::vector<std::string>& items);
// JSON cannot hold every byte string; a word that is not UTF-8 is refused rather than changed.
Result<std::string> exec_body(const RemoteCommand& command, bool has_input, const std::optional<WindowSize>& terminal = {});
// The switches -i and -t.
inline constexpr OptionSpec kInteractiveOption{"-i,--interactive", "", "pass stdin on; it always is, so this is for the habit of -it"};
inline constexpr OptionSpec kTerminalOption{"-t,--tty", "", "give the command this terminal: colours, job control, full-screen programs"};
// Whether -t is there; a usage error where stdin is no terminal.
Result<bool> wants_terminal(const Args& args);

// Opens the way, carries the command, says on stderr what its exit status cannot say. `prepare` may set a tick.
Result<int> carry(Api& api, std::string_view id, RemoteCommand command, Signals& signals,
                  const std::function<void(Session&)>& prepare = {});

}  // namespace osb::cli
