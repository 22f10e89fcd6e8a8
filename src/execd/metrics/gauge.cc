#include "execd/metrics/gauge.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/text.h"
#include "execd/small_file.h"
#include "sys/kernel_file.h"

namespace osb::execd::metrics {
namespace {

constexpr std::size_t kFileBytes = 64 * 1024;
constexpr std::uint64_t kShortestWindowNanos = 100'000'000;
constexpr double kMebibyte = 1024.0 * 1024.0;

std::string text_of(const std::string& root, const char* path) {
  auto text = read_small_file(root + path, kFileBytes);
  return text ? *std::move(text) : std::string();
}

// The word at `index` of the first line; 0 for "max" and for what is not there.
std::uint64_t word(const std::string& text, std::size_t index = 0) {
  auto words = split(std::string_view(text).substr(0, text.find('\n')), ' ');
  return index < words.size() ? parse_int<std::uint64_t>(words[index]).value_or(0) : 0;
}

std::uint64_t quota_millis(std::uint64_t quota, std::uint64_t period) { return period == 0 ? 0 : quota * 1000 / period; }

bool read_v2(const std::string& root, Sample& out) {
  auto cpu = text_of(root, "/sys/fs/cgroup/cpu.stat");
  auto memory = word(text_of(root, "/sys/fs/cgroup/memory.current"));
  if (cpu.empty() || memory == 0) return false;
  auto limit = text_of(root, "/sys/fs/cgroup/cpu.max");
  out.cpu_nanos = sys::value_of(cpu, "usage_usec") * 1000;
  out.cpu_millis = quota_millis(word(limit, 0), word(limit, 1));
  out.memory_bytes = memory - std::min(memory, sys::value_of(text_of(root, "/sys/fs/cgroup/memory.stat"), "inactive_file"));
  out.memory_total = word(text_of(root, "/sys/fs/cgroup/memory.max"));
  return true;
}

bool read_v1(const std::string& root, Sample& out) {
  auto memory = word(text_of(root, "/sys/fs/cgroup/memory/memory.usage_in_bytes"));
  if (memory == 0) return false;
  out.cpu_nanos = word(text_of(root, "/sys/fs/cgroup/cpuacct/cpuacct.usage"));
  out.cpu_millis =
      quota_millis(word(text_of(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us")), word(text_of(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us")));
  out.memory_bytes = memory - std::min(memory, sys::value_of(text_of(root, "/sys/fs/cgroup/memory/memory.stat"), "total_inactive_file"));
  out.memory_total = word(text_of(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  return true;
}

// "MemTotal:       16384 kB"
std::uint64_t meminfo(const std::string& text, std::string_view key) {
  for (auto line : split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    auto value = trim(line.substr(key.size()));
    return parse_int<std::uint64_t>(value.substr(0, value.find(' '))).value_or(0) * 1024;
  }
  return 0;
}

// "cpu  user nice system idle iowait irq softirq ...": everything but idle and iowait is use.
void read_machine(const std::string& root, const std::string& memory, Sample& out) {
  std::uint64_t ticks = 0;
  auto stat = text_of(root, "/proc/stat");
  for (std::size_t field : {2u, 3u, 4u, 7u, 8u}) ticks += word(stat, field);
  out.cpu_nanos = ticks * (1'000'000'000 / static_cast<std::uint64_t>(std::max(::sysconf(_SC_CLK_TCK), 1L)));
  auto total = meminfo(memory, "MemTotal:");
  out.memory_bytes = total - std::min(total, meminfo(memory, "MemAvailable:"));
}

void add(std::string& out, const char* name, double value) {
  char text[80];
  std::snprintf(text, sizeof text, "%s\"%s\":%.3f", out.empty() ? "{" : ",", name, value);
  out += text;
}

}  // namespace

Sample take_sample(const std::string& root) {
  Sample out;
  auto memory = text_of(root, "/proc/meminfo");
  if (!read_v2(root, out) && !read_v1(root, out)) read_machine(root, memory, out);
  auto machine = meminfo(memory, "MemTotal:");
  if (out.memory_total == 0 || (machine != 0 && out.memory_total > machine)) out.memory_total = machine;
  if (out.cpu_millis == 0) out.cpu_millis = static_cast<std::uint64_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L)) * 1000;
  return out;
}

std::string Gauge::json(const Sample& sample, std::uint64_t now_nanos, bool watched) {
  auto elapsed = now_nanos - std::min(now_nanos, last_nanos_);
  if (last_nanos_ == 0 || elapsed >= kShortestWindowNanos) {
    auto used = static_cast<double>(sample.cpu_nanos - std::min(sample.cpu_nanos, last_cpu_));
    auto allowed = static_cast<double>(std::max<std::uint64_t>(elapsed, 1)) * static_cast<double>(sample.cpu_millis) / 1000;
    percent_ = std::clamp(used * 100 / allowed, 0.0, 100.0);
    last_nanos_ = now_nanos;
    last_cpu_ = sample.cpu_nanos;
  }
  auto total = static_cast<double>(sample.memory_total) / kMebibyte;
  auto used = std::min(static_cast<double>(sample.memory_bytes) / kMebibyte, total);
  std::string out;
  add(out, "cpu_count", static_cast<double>(sample.cpu_millis) / 1000);
  add(out, "cpu_used_pct", percent_);
  add(out, "mem_total_mib", total);
  add(out, "mem_used_mib", used);
  if (watched) {
    add(out, "cpu_used_percentage", percent_);
    add(out, "memory_total_in_mib", total);
    add(out, "memory_used_in_mib", used);
  }
  return cat(out, ",\"timestamp\":", wall_now().micros / 1000, "}");
}

}  // namespace osb::execd::metrics
