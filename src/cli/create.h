// `create`: a sandbox that stays.
#pragma once
#include "base/result.h"
#include "cli/sandbox_request.h"
#include "cli/spec.h"

namespace osb::cli {

Result<SandboxRequest> read_create_options(const Args& args);

}  // namespace osb::cli
