// POST /osb/v1/exec: a program run with its input, output and signals on one upgraded connection.
#pragma once
#include "execd/sandbox.h"
#include "http/http.h"

namespace osb::execd {

Task<void> run_exec(Sandbox& sandbox, http::Request& request, http::Responder& responder);

}  // namespace osb::execd
