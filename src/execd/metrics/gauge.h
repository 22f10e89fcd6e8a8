// What the container around execd uses: its control group (v2, else v1) or, without one, the whole machine.
//
// In a native sandbox the host answers from outside and these numbers are not asked for.
#pragma once
#include <cstdint>
#include <string>

namespace osb::execd::metrics {

struct Sample {
  std::uint64_t cpu_nanos = 0;
  std::uint64_t cpu_millis = 0;  // processors it may use, in thousandths
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_total = 0;
};
// `root` is put before every path; tests have a tree of their own.
Sample take_sample(const std::string& root = {});

// Turns samples into the object of GET /metrics; the rate of use is since the sample before, or since the machine started.
class Gauge {
 public:
  std::string json(const Sample& sample, std::uint64_t now_nanos, bool watched);

 private:
  std::uint64_t last_nanos_ = 0;
  std::uint64_t last_cpu_ = 0;
  double percent_ = 0;
};

}  // namespace osb::execd::metrics
