// Files and directories over HTTP: the table of routes and the short handlers.
#pragma once
#include "execd/sandbox.h"
#include "http/router.h"

namespace osb::execd {

void add_files_routes(http::Router& routes, Sandbox& sandbox);

}  // namespace osb::execd
