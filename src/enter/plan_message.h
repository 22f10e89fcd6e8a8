// An EnterPlan as bytes and descriptors. Both ends are the same build; the reader checks bounds all the same.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "enter/plan.h"

namespace osb::enter {

inline constexpr std::size_t kMaxPlanBytes = 128 * 1024;

struct PlanMessage {
  std::string bytes;
  std::vector<int> descriptors;  // borrowed from the plan; the group to clone into comes first
};
PlanMessage write_plan(const EnterPlan& plan);
// Numbers in the plan are then those of `descriptors`.
Result<EnterPlan> read_plan(std::string_view bytes, const int* descriptors, std::size_t count);

}  // namespace osb::enter
