// POST /session, POST /session/{id}/run, DELETE /session/{id}
#pragma once
#include "execd/sandbox.h"
#include "http/router.h"

namespace osb::execd {

void add_session_routes(http::Router& routes, Sandbox& sandbox);

// DELETE /command?id= with the id of a session (closes it) or of one of its runs (interrupts it). False: it is neither.
Task<bool> interrupt_session(Sandbox& sandbox, std::string id);

}  // namespace osb::execd
