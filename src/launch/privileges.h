// Who the new process is and what it may ask of the kernel: groups, ids, capabilities, Landlock, seccomp, descriptors.
// Each function is one step of enter(): true, or false with errno.
#pragma once
#include "launch/enter.h"

namespace osb::launch {

// The descriptors execd starts with, by number; 0, 1 and 2 are /dev/null and nothing else is open.
inline constexpr int kListenerFd = 3;
inline constexpr int kSetupFd = 4;
inline constexpr int kReportFd = 5;
inline constexpr int kOomCounterFd = 6;

class Privileges {
 public:
  explicit Privileges(const EnterPlan& plan) : plan_(plan) {}

  bool join_cgroups();
  bool leave_cgroup_view();
  bool join_network();
  bool set_hostname();
  bool new_keyring();
  bool set_rlimits();
  bool make_landlock_rules();
  bool become_agent();
  bool drop_capabilities();
  bool enter_landlock();
  bool arrange_descriptors();
  bool load_seccomp();
  bool become_execd();

 private:
  const EnterPlan& plan_;
  int landlock_ = -1;
  int execd_ = -1;
};

}  // namespace osb::launch
