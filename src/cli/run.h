// `run`: one command in a sandbox of its own.
#pragma once
#include "base/result.h"
#include "cli/remote_command.h"
#include "cli/sandbox_request.h"
#include "cli/spec.h"

namespace osb::cli {

struct RunOptions {
  SandboxRequest sandbox;
  RemoteCommand command;
  bool keep = false;
};

Result<RunOptions> read_run_options(const Args& args);
// Finds or starts a daemon, runs the command in a sandbox of its own, removes what was made.
Result<int> run_once(const Args& args, RunOptions options);

}  // namespace osb::cli
