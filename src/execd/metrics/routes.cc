#include "execd/metrics/routes.h"

#include "base/clock.h"
#include "execd/metrics/processes.h"

namespace osb::execd {
namespace {

using http::Request;
using http::Responder;
using Params = http::Router::Params;

constexpr auto kEvery = std::chrono::seconds(1);

std::string metrics_now(Sandbox& sandbox, bool watched) {
  return sandbox.gauge.json(metrics::take_sample(), static_cast<std::uint64_t>(boot_now_nanos()), watched);
}

Task<void> send_json(Responder& responder, std::string body) {
  auto response = http::Response::json(200, std::move(body));
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
}

Task<void> watch(Sandbox& sandbox, Responder& responder) {
  http::Headers headers;
  headers.add("Content-Type", "text/event-stream");
  headers.add("Cache-Control", "no-cache");
  auto event = metrics_now(sandbox, true) + "\n\n";
  auto sent = co_await responder.begin(200, std::move(headers), event);
  while (sent) {  // a client that left is noticed by the next write
    co_await sleep_for(kEvery);
    event = metrics_now(sandbox, true) + "\n\n";
    sent = co_await responder.chunk(event);
  }
}

Task<void> list_processes(Responder& responder) {
  auto body = co_await metrics::processes_json();
  co_await send_json(responder, std::move(body));
}

}  // namespace

void add_metrics_routes(http::Router& routes, Sandbox& sandbox) {
  auto& s = sandbox;
  routes.add("GET", "/metrics", [&s](Request&, Responder& r, const Params&) { return send_json(r, metrics_now(s, false)); });
  routes.add("GET", "/metrics/watch", [&s](Request&, Responder& r, const Params&) { return watch(s, r); });
  routes.add("GET", "/osb/v1/processes", [](Request&, Responder& r, const Params&) { return list_processes(r); });
}

}  // namespace osb::execd
