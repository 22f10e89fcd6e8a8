// One step after the other, or the end: what a new process does before it is a sandbox.
#pragma once
#include <unistd.h>

#include <cerrno>

#include "enter/plan.h"

namespace osb::enter {

// Carries one step out, or ends the process with the step's name and errno in the parent's hands. There is no
// warning level here: a sandbox either has all of its walls or does not exist.
class Steps {
 public:
  explicit Steps(const EnterPlan& plan) : plan_(plan), report_(plan.report) {}

  template <class Act>
  void must(wire::Step step, Act act) {
    if (plan_.die_at == step) ::_exit(137);  // a signal from inside its own pid namespace does not end pid 1
    bool done = plan_.fail_at != step && act();
    if (plan_.fail_at == step) errno = ECANCELED;
    if (!done) die(step);
  }
  void report_on(int fd) { report_ = fd; }

 private:
  [[noreturn]] void die(wire::Step step) {
    wire::ChildReport report{step, errno};
    [[maybe_unused]] auto n = ::write(report_, &report, sizeof report);
    ::_exit(125);
  }
  const EnterPlan& plan_;
  int report_;
};

}  // namespace osb::enter
