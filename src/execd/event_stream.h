// The event stream of one foreground command, from its first event to the end of the response.
#pragma once
#include <memory>
#include <string>

#include "execd/commands.h"
#include "execd/sandbox.h"
#include "http/http.h"

namespace osb::execd {

http::Headers event_stream_headers();

// Ends with exactly one terminal event as soon as the command's leader has ended and what it wrote is out. A slow
// client slows the command down; a client that is gone does not stop it.
Task<void> stream_command(Sandbox& sandbox, std::shared_ptr<Command> command, http::Responder& responder);

}  // namespace osb::execd
