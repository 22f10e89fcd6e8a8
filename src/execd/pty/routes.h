// Terminals over HTTP: POST /pty, GET and DELETE /pty/{id}, GET /pty/{id}/ws.
#pragma once
#include "execd/sandbox.h"
#include "http/router.h"

namespace osb::execd {

void add_pty_routes(http::Router& routes, Sandbox& sandbox);

}  // namespace osb::execd
