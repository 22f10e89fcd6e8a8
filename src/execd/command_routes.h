// POST /command and what clients ask about commands afterwards.
#pragma once
#include "execd/sandbox.h"
#include "http/router.h"

namespace osb::execd {

Task<void> run_command(Sandbox& sandbox, http::Request& request, http::Responder& responder);
Task<void> interrupt_command(Sandbox& sandbox, http::Request& request, http::Responder& responder);
Task<void> command_status(Sandbox& sandbox, std::string id, http::Responder& responder);
Task<void> command_logs(Sandbox& sandbox, std::string id, http::Request& request, http::Responder& responder);

}  // namespace osb::execd
