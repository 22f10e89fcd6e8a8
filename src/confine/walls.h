// Who the new process is and what it may use: its ids, its network, its limits, no capability.
// Each function is one step of enter(): true, or false with errno.
#pragma once
#include "confine/plan.h"

namespace osb::confine {

class Walls {
 public:
  explicit Walls(const Plan& plan) : plan_(plan) {}

  bool follow_keeper();
  bool await_ids();
  bool raise_loopback();
  bool set_rlimits();
  bool drop_all_capabilities();
  bool keep_program_ours();
  bool become_execd();

 private:
  const Plan& plan_;
};

}  // namespace osb::confine
