// What a sandbox uses now: every number the runtime measured.
#include <cstdio>

#include "api/json_text.h"
#include "api/v1/handlers.h"

namespace osb::api::v1 {
namespace {

std::string decimal(double value) {
  char digits[64];
  std::snprintf(digits, sizeof digits, "%.2f", value);
  return digits;
}

std::string stats_json(const SandboxId& id, const lifecycle::Measure& measure) {
  const auto& usage = measure.usage;
  ObjectText cpu, memory, disk, pids, network, text;
  cpu.raw("usedPercent", decimal(measure.cpu_percent)).add("limitMillis", usage.cpu_limit_millis);
  cpu.add("usedNanos", usage.cpu_nanos).add("throttledNanos", usage.cpu_throttled_nanos);
  memory.add("usedBytes", measure.memory_used_bytes).add("chargedBytes", usage.memory_bytes);
  memory.add("peakBytes", usage.memory_peak_bytes).add("limitBytes", usage.memory_limit_bytes).add("oomKills", usage.oom_kills);
  disk.add("usedBytes", usage.disk_bytes).add("limitBytes", usage.disk_limit_bytes);
  pids.add("current", usage.pids).add("limit", usage.pids_limit);
  network.add("receivedBytes", usage.network_received_bytes).add("sentBytes", usage.network_sent_bytes);
  text.add("id", id.text()).add("takenAt", format_rfc3339(measure.taken_at));
  text.raw("cpu", std::move(cpu).done()).raw("memory", std::move(memory).done()).raw("disk", std::move(disk).done());
  text.raw("pids", std::move(pids).done()).raw("network", std::move(network).done());
  return std::move(text).done();
}

}  // namespace

Reply get_stats(Context& context, Call call) {
  CO_TRY(auto id, sandbox_id(call));
  CO_TRY([[maybe_unused]] auto sandbox, context.lifecycle.get(id, call.caller));
  CO_TRY(auto measure, co_await context.lifecycle.measure(id));
  co_return http::Response::json(200, stats_json(id, measure));
}

}  // namespace osb::api::v1
