#include "confine/enter.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

#include "confine/view.h"
#include "confine/walls.h"
#include "enter/enter.h"
#include "enter/privileges.h"
#include "enter/steps.h"

namespace osb::confine {

using wire::Step;

void enter(const Plan& plan) {
  enter::Steps steps(plan.base);
  View view(plan);
  Walls walls(plan);
  enter::Privileges privileges(plan.base);

  steps.must(Step::clone, [&] { return walls.follow_keeper(); });  // first: from here on the keeper's death is ours
  steps.must(Step::user_namespace, [&] { return walls.await_ids(); });
  steps.must(Step::join_network, [&] { return walls.raise_loopback(); });
  steps.must(Step::hostname, [&] { return privileges.set_hostname(); });
  steps.must(Step::keyring, [&] { return privileges.new_keyring(); });

  steps.must(Step::writable_layer, [&] { return view.stage(); });
  steps.must(Step::image_layers, [&] { return view.image_layer(); });
  steps.must(Step::root_overlay, [&] { return view.root(); });
  steps.must(Step::host_view, [&] { return view.host_directories(); });
  steps.must(Step::proc, [&] { return view.proc(); });
  steps.must(Step::proc_masks, [&] { return view.proc_masks(); });
  steps.must(Step::sys, [&] { return view.sys(); });
  steps.must(Step::dev, [&] { return view.dev(); });
  steps.must(Step::etc, [&] { return view.etc(); });
  steps.must(Step::scratch, [&] { return view.scratch(); });
  steps.must(Step::root_switch, [&] { return view.switch_root(); });  // from here nothing of the host's tree is left

  steps.must(Step::rlimits, [&] { return privileges.set_rlimits() && walls.set_rlimits(); });
  steps.must(Step::landlock_rules, [&] { return privileges.make_landlock_rules(); });
  steps.must(Step::capabilities, [&] { return walls.drop_all_capabilities(); });
  steps.must(Step::no_new_privs, [&] { return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0; });
  steps.must(Step::landlock, [&] { return privileges.enter_landlock(); });
  steps.must(Step::descriptors, [&] { return privileges.arrange_descriptors() && walls.keep_program_ours(); });
  steps.report_on(enter::kReportFd);
  steps.must(Step::seccomp, [&] { return privileges.load_seccomp(); });  // last: it filters everything after it
  steps.must(Step::exec, [&] { return walls.become_execd(); });
  ::_exit(125);
}

}  // namespace osb::confine
