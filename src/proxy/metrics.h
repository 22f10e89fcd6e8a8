// GET /metrics and /metrics/watch of execd's port, answered from what the kernel says about the sandbox's groups: a program
// inside can neither slow the answer down nor change it, and a first answer does not wait for a second look.
#pragma once
#include <string>
#include <string_view>

#include "http/http.h"
#include "lifecycle/service.h"

namespace osb::proxy {

enum class MetricsRoute : std::uint8_t { none, once, watch };
MetricsRoute metrics_route(std::string_view method, std::string_view path);

// The object that SDKs read; with `watched` also the names the command line of others asks for in a stream.
std::string metrics_json(const lifecycle::Measure& measure, bool watched);

Task<Result<>> answer_metrics(lifecycle::Service& lifecycle, SandboxId id, http::Responder& client);
// One object a second until the client or the sandbox goes. Nothing ticks when nobody watches.
Task<Result<>> watch_metrics(lifecycle::Service& lifecycle, SandboxId id, http::Responder& client);

}  // namespace osb::proxy
