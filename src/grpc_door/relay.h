// Passes a call on to opensandbox-serve: one upgraded connection on its socket a call, envelopes both ways, trailers at the end
// (src/api/connect/relay.cc is the other end). Nothing is decoded here: keys and messages are judged by serve.
#pragma once
#include <memory>
#include <string>

#include "grpc_door/call.h"

namespace osb::grpc_door {

// Finishes the call, whatever happens.
Task<void> relay(std::shared_ptr<Call> call, std::string socket_path);

}  // namespace osb::grpc_door
