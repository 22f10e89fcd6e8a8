#include "enter/enter.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

#include "enter/mounts.h"
#include "enter/privileges.h"
#include "enter/steps.h"

namespace osb::enter {

using wire::Step;

void enter(EnterPlan& plan, AwaitRest await_rest) {
  Steps steps(plan);
  Mounts mounts(plan);
  Privileges privileges(plan);
  // A launcher that dies half-way takes a half-made sandbox with it; changing ids below clears this again.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);

  steps.must(Step::cgroup_attach, [&] { return privileges.join_cgroups(); });  // first: all that follows is accounted
  steps.must(Step::cgroup_namespace, [&] { return privileges.leave_cgroup_view(); });
  steps.must(Step::join_network, [&] { return privileges.join_network(); });
  steps.must(Step::keyring, [&] { return privileges.new_keyring(); });
  steps.must(Step::proc, [&] { return mounts.go_to_work() && mounts.proc(); });
  steps.must(Step::proc_masks, [&] { return mounts.proc_masks(); });
  steps.must(Step::writable_layer, [&] { return mounts.writable_layer(); });

  // Up to here all sandboxes of one size and policy are alike. A sprout has this behind it when its request comes.
  if (plan.rest >= 0) {
    if (!await_rest(plan)) ::_exit(0);
    steps.report_on(plan.report);
  }
  steps.must(Step::hostname, [&] { return privileges.set_hostname() && mounts.name_files(); });
  steps.must(Step::image_layers, [&] { return mounts.image_layers(); });
  steps.must(Step::volume_sources, [&] { return mounts.volume_sources(); });
  steps.must(Step::root_overlay, [&] { return mounts.root_overlay(); });
  steps.must(Step::host_view, [&] { return mounts.host_view(); });
  steps.must(Step::restored_places, [&] { return mounts.restored_places(); });
  steps.must(Step::root_switch, [&] { return mounts.switch_root(); });  // from here host paths mean nothing
  steps.must(Step::sys, [&] { return mounts.sys(); });
  steps.must(Step::dev, [&] { return mounts.dev(); });
  steps.must(Step::etc, [&] { return mounts.etc(); });
  steps.must(Step::scratch, [&] { return mounts.scratch(); });

  steps.must(Step::volume_mounts, [&] { return mounts.volume_mounts(); });

  steps.must(Step::rlimits, [&] { return privileges.set_rlimits(); });
  steps.must(Step::landlock_rules, [&] { return privileges.make_landlock_rules(mounts.writable_places()); });
  steps.must(Step::join_user, [&] { return privileges.become_agent(); });
  steps.must(Step::capabilities, [&] { return privileges.drop_capabilities(); });
  steps.must(Step::no_new_privs, [&] { return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0; });
  steps.must(Step::landlock, [&] { return privileges.enter_landlock(); });  // needs no_new_privs
  steps.must(Step::descriptors, [&] { return privileges.arrange_descriptors(); });
  steps.report_on(kReportFd);
  steps.must(Step::seccomp, [&] { return privileges.load_seccomp(); });  // last: it filters everything after it
  steps.must(Step::exec, [&] { return privileges.tell_started(); });     // what follows is execd
}

}  // namespace osb::enter
