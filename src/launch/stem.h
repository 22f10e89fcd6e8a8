// The launcher's side of the stem (execd/stem.h): starts it, asks it to divide, replaces it now and then.
#pragma once
#include <cstdint>

#include "base/fd.h"
#include "base/result.h"
#include "enter/plan_message.h"

namespace osb::launch {

class Stem {
 public:
  // `execd`: the sealed program.
  explicit Stem(const Fd& execd) : execd_(execd) {}
  Stem(const Stem&) = delete;
  Stem& operator=(const Stem&) = delete;
  ~Stem() { stop(); }

  // A new child of ours that is on its way into its sandbox; a failure on that way comes through plan.report. After an error there may
  // be a child all the same, in plan.cgroup: a stem can die between the division and its answer.
  Result<std::int32_t> divide(const enter::EnterPlan& plan);
  // Starts one if none runs, or if the present one has served its time; while nobody waits for us.
  void freshen();
  void stop();

 private:
  Result<> start();
  Result<> send(const enter::PlanMessage& message);

  const Fd& execd_;
  std::int32_t pid_ = 0;
  Fd socket_;
  unsigned divisions_ = 0;
};

}  // namespace osb::launch
