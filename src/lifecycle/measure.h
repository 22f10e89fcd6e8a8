// What a sandbox uses, with the rate of processor use since the last look. Pure but for the values passed in.
#pragma once
#include <cstdint>

#include "lifecycle/table.h"
#include "runtime/runtime.h"

namespace osb::lifecycle {

struct Measure {
  runtime::Usage usage;
  WallTime taken_at;
  double cpu_percent = 0;  // 0..100 of what its limit allows
  // File pages that nobody used lately go when memory is needed; they are not what a limit is about.
  std::uint64_t memory_used_bytes = 0;
};

// The rate since `mark`, which moves along. Looks that follow each other closely share one rate: a difference of a few
// microseconds says nothing. The first look gives the average since `born_boot_nanos`.
double cpu_percent(CpuMark& mark, const runtime::Usage& usage, std::int64_t now_boot_nanos, std::int64_t born_boot_nanos);

// Limits the runtime did not tell are taken from what was asked for.
Measure measure_of(runtime::Usage usage, const Limits& limits);

}  // namespace osb::lifecycle
