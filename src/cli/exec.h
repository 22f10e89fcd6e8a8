// `exec`: a command in a sandbox that is there.
#pragma once
#include "base/result.h"
#include "cli/remote_command.h"
#include "cli/spec.h"

namespace osb::cli {

Result<RemoteCommand> read_exec_options(const Args& args);

}  // namespace osb::cli
