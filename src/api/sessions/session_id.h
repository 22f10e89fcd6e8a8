// What several handlers read out of a call.
#pragma once
#include "api/sessions/call.h"
#include "base/text.h"

namespace osb::api::sessions {

// Anything that is not shaped like an id is a session that does not exist.
Result<SandboxId> session_id(const Call& call);
Result<std::string> idempotency_key(const Call& call);  // "" = none

}  // namespace osb::api::sessions
