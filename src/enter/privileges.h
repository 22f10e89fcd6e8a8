// Who the new process is and what it may ask of the kernel: groups, ids, capabilities, Landlock, seccomp, descriptors.
// Each function is one step of enter(): true, or false with errno.
#pragma once
#include <span>

#include "enter/enter.h"

namespace osb::enter {

class Privileges {
 public:
  explicit Privileges(const EnterPlan& plan) : plan_(plan) {}

  bool join_cgroups();
  bool leave_cgroup_view();
  bool join_network();
  bool set_hostname();
  bool new_keyring();
  bool set_rlimits();
  bool make_landlock_rules(std::span<const int> writable_places = {});  // none: they are looked up by name
  bool become_agent();
  bool drop_capabilities();
  bool enter_landlock();
  bool arrange_descriptors();
  bool load_seccomp();
  bool tell_started();

 private:
  const EnterPlan& plan_;
  int landlock_ = -1;
};

}  // namespace osb::enter
