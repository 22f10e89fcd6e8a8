// POST /command and what clients ask about commands afterwards.
#pragma once
#include "execd/run_request.h"
#include "execd/sandbox.h"
#include "http/router.h"

namespace osb::execd {

Task<void> run_command(Sandbox& sandbox, http::Request& request, http::Responder& responder);
// What run_command does once the request is read: also the way of code without a language.
Task<void> start_command(Sandbox& sandbox, RunRequest asked, runs::Key key, http::Responder& responder);
Task<void> interrupt_command(Sandbox& sandbox, http::Request& request, http::Responder& responder);
Task<void> command_status(Sandbox& sandbox, std::string id, http::Responder& responder);
Task<void> command_logs(Sandbox& sandbox, std::string id, http::Request& request, http::Responder& responder);

// The first value of a query parameter; "" when it is not there or the query cannot be read.
std::string query_value(const http::Request& request, std::string_view name);

}  // namespace osb::execd
