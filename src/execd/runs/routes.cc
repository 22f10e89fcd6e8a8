#include "execd/runs/routes.h"

#include "base/text.h"
#include "execd/command_routes.h"
#include "execd/replies.h"
#include "execd/runs/follow.h"

namespace osb::execd {
namespace {

// No `since` is the start; a number that cannot be read is a mistake, for a wrong start would look like missing events.
std::optional<std::uint64_t> since_of(const http::Request& request) {
  if (request.query.empty()) return 0;
  std::string text = query_value(request, "since");
  return text.empty() && request.query.find("since") == std::string::npos ? 0 : parse_int<std::uint64_t>(text);
}

Task<void> read_on(Sandbox& sandbox, std::string id, http::Request& request, http::Responder& responder) {
  auto since = since_of(request);
  if (!since) co_return co_await reply_error(responder, 400, "INVALID_REQUEST_BODY", "\"since\" must be the number of an event, or 0");
  auto run = sandbox.runs.find(id);
  if (!run)
    co_return co_await reply_error(responder, 404, "RUN_NOT_FOUND",
                                   cat("no run has the id ", json_string(id.substr(0, 80)), "; runs are kept for an hour after their end"));
  co_await runs::follow(std::move(run), responder, *since);
}

}  // namespace

void add_run_routes(http::Router& routes, Sandbox& sandbox) {
  routes.add("GET", "/osb/v1/runs/{id}/events", [&s = sandbox](http::Request& q, http::Responder& r, const http::Router::Params& p) {
    return read_on(s, p.find("id")->second, q, r);
  });
}

}  // namespace osb::execd
