// GET /metrics and /metrics/watch (what execd can see of its container), GET /osb/v1/processes (who runs in the sandbox).
#pragma once
#include "execd/sandbox.h"
#include "http/router.h"

namespace osb::execd {

void add_metrics_routes(http::Router& routes, Sandbox& sandbox);

}  // namespace osb::execd
