#include "lifecycle/measure.h"

#include <algorithm>

#include "base/text.h"
#include "lifecycle/errors.h"
#include "lifecycle/service.h"

namespace osb::lifecycle {
namespace {

constexpr std::int64_t kShortestWindowNanos = 100'000'000;

Error not_running(const Sandbox& sandbox) {
  return Error(Errc::conflict, cat("Sandbox ", sandbox.id.text(), " is ", to_lower(name_of(sandbox.status.state)), "; it uses nothing."))
      .with_code("DOCKER::SANDBOX_NOT_RUNNING");
}

}  // namespace

double cpu_percent(CpuMark& mark, const runtime::Usage& usage, std::int64_t now_boot_nanos, std::int64_t born_boot_nanos) {
  bool first = mark.boot_nanos == 0;
  auto since = first ? born_boot_nanos : mark.boot_nanos;
  if (!first && now_boot_nanos - since < kShortestWindowNanos) return mark.percent;
  auto elapsed = std::max<std::int64_t>(now_boot_nanos - since, 1);
  auto used = usage.cpu_nanos >= mark.cpu_nanos ? usage.cpu_nanos - mark.cpu_nanos : 0;
  auto allowed = static_cast<double>(elapsed) * static_cast<double>(std::max<std::uint64_t>(usage.cpu_limit_millis, 1)) / 1000;
  mark = {now_boot_nanos, usage.cpu_nanos, std::clamp(static_cast<double>(used) * 100 / allowed, 0.0, 100.0)};
  return mark.percent;
}

Measure measure_of(runtime::Usage usage, const Limits& limits) {
  if (usage.cpu_limit_millis == 0) usage.cpu_limit_millis = limits.cpu_millis;
  if (usage.memory_limit_bytes == 0) usage.memory_limit_bytes = limits.memory_bytes;
  if (usage.disk_limit_bytes == 0) usage.disk_limit_bytes = limits.disk_bytes;
  if (usage.pids_limit == 0) usage.pids_limit = limits.pids;
  Measure out;
  auto held = usage.memory_bytes - std::min(usage.memory_bytes, usage.memory_reclaimable_bytes);
  out.memory_used_bytes = std::min(held, usage.memory_limit_bytes);
  out.usage = usage;
  return out;
}

Task<Result<Measure>> Service::measure(SandboxId id) {
  const auto* sandbox = find(id);
  if (!sandbox) co_return unknown_sandbox(id);
  if (is_finished(sandbox->status.state)) co_return not_running(*sandbox);
  auto usage = co_await runtime_.usage(id);
  auto* entry = table_.find(id.text());
  if (entry == nullptr || entry->leaving != Leaving::no) co_return unknown_sandbox(id);
  if (!usage) co_return std::move(usage).error();
  auto out = measure_of(*usage, entry->sandbox.spec.limits);
  out.taken_at = options_.wall_clock();
  auto now = boot_now_nanos();
  auto age = std::max<std::int64_t>(out.taken_at.micros - entry->sandbox.created_at.micros, 0) * 1000;
  out.cpu_percent = cpu_percent(entry->cpu_mark, out.usage, now, now - age);
  co_return out;
}

}  // namespace osb::lifecycle
