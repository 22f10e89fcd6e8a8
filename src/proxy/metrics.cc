#include "proxy/metrics.h"

#include <chrono>
#include <cstdio>

#include "async/task_group.h"
#include "base/text.h"
#include "proxy/forward.h"

namespace osb::proxy {
namespace {

constexpr auto kEvery = std::chrono::seconds(1);
constexpr double kMebibyte = 1024.0 * 1024.0;

void add(std::string& out, std::string_view name, double value) {
  char digits[64];
  std::snprintf(digits, sizeof digits, "%.3f", value);
  out += cat(out.empty() ? "{\"" : ",\"", name, "\":", std::string_view(digits));
}

http::Headers stream_headers() {
  http::Headers headers;
  headers.add("Content-Type", "text/event-stream");
  headers.add("Cache-Control", "no-cache");
  return headers;
}

Task<void> wake_when_gone(http::Responder& client, Timer& timer, bool& gone) {
  co_await client.closed();
  gone = true;
  timer.cancel();
}

std::string event_of(const Result<lifecycle::Measure>& measure) {
  if (measure) return cat(metrics_json(*measure, true), "\n\n");
  return cat("{\"error\":", json_string(measure.error().what()), "}\n\n");
}

// A paused sandbox goes on being measured; one that ended is the last event.
Task<void> tick(lifecycle::Service& lifecycle, SandboxId id, http::Responder& client, Timer& timer, const bool& gone) {
  for (auto due = std::chrono::steady_clock::now() + kEvery;; due += kEvery) {
    timer.expires_at(due);
    auto [cut_short] = co_await timer.async_wait(nothrow);
    if (gone || cut_short) co_return;
    auto measure = co_await lifecycle.measure(id);
    auto sent = co_await client.chunk(event_of(measure));
    if (!sent || !measure) co_return;
  }
}

}  // namespace

MetricsRoute metrics_route(std::string_view method, std::string_view path) {
  if (method != "GET") return MetricsRoute::none;
  if (path == "/metrics") return MetricsRoute::once;
  return path == "/metrics/watch" ? MetricsRoute::watch : MetricsRoute::none;
}

std::string metrics_json(const lifecycle::Measure& measure, bool watched) {
  auto total = static_cast<double>(measure.usage.memory_limit_bytes) / kMebibyte;
  auto used = static_cast<double>(measure.memory_used_bytes) / kMebibyte;
  std::string out;
  add(out, "cpu_count", static_cast<double>(measure.usage.cpu_limit_millis) / 1000);
  add(out, "cpu_used_pct", measure.cpu_percent);
  add(out, "mem_total_mib", total);
  add(out, "mem_used_mib", used);
  if (watched) {
    add(out, "cpu_used_percentage", measure.cpu_percent);
    add(out, "memory_total_in_mib", total);
    add(out, "memory_used_in_mib", used);
  }
  out += cat(",\"timestamp\":", measure.taken_at.micros / 1000, "}");
  return out;
}

Task<Result<>> answer_metrics(lifecycle::Service& lifecycle, SandboxId id, http::Responder& client) {
  auto measure = co_await lifecycle.measure(std::move(id));
  if (!measure) co_return std::move(measure).error();
  auto response = http::Response::json(200, metrics_json(*measure, false));
  co_return co_await answer(client, std::move(response));
}

Task<Result<>> watch_metrics(lifecycle::Service& lifecycle, SandboxId id, http::Responder& client) {
  auto first = co_await lifecycle.measure(id);
  if (!first) co_return std::move(first).error();
  auto begun = co_await client.begin(200, stream_headers(), event_of(first));
  if (!begun) co_return Ok{};
  co_await asio::this_coro::throw_if_cancelled(false);  // whoever cancels us waits until what we started has ended
  auto executor = co_await asio::this_coro::executor;
  Timer timer(executor);
  bool gone = false;
  TaskGroup lookout(executor);
  lookout.spawn("watch client", wake_when_gone(client, timer, gone));
  co_await tick(lifecycle, std::move(id), client, timer, gone);
  co_await lookout.stop();
  if (!gone) [[maybe_unused]]
    auto ended = co_await client.end();
  co_return Ok{};
}

}  // namespace osb::proxy
