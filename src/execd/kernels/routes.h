// The code interpreter: POST /code, its contexts, and the interrupt of what runs in one.
#pragma once
#include <memory>

#include "execd/sandbox.h"
#include "http/router.h"

namespace osb::execd {

void add_code_routes(http::Router& routes, Sandbox& sandbox);

// DELETE /code and DELETE /command with the id of a context.
Task<void> interrupt_context(std::shared_ptr<Context> context, http::Responder& responder);

}  // namespace osb::execd
