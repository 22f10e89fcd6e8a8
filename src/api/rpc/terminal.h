// A terminal of a session in messages: the first one opens it, input and output then pass side by side.
#pragma once
#include "api/rpc/call.h"

namespace osb::api::rpc {

// Ends when the program in it has ended (the last message says how), or when the caller goes: then it is hung up.
// A caller that has no more input may go on reading.
Task<Result<>> terminal(Call& call);

}  // namespace osb::api::rpc
