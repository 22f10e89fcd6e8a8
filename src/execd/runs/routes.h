// GET /osb/v1/runs/{run_id}/events?since=SEQ
#pragma once
#include "execd/sandbox.h"
#include "http/router.h"

namespace osb::execd {

void add_run_routes(http::Router& routes, Sandbox& sandbox);

}  // namespace osb::execd
