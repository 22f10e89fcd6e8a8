// What the keeper finds out and prepares once: the kernel's features, the sealed execd, the compiled filters.
#pragma once
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "confine/plan.h"
#include "launch/filter.h"

namespace osb::confine {

struct HostOptions {
  std::string run_dir;    // of the instance
  std::string data_dir;   // images/layers
  std::string execd;      // path of opensandbox-execd
  std::string workspace;  // directory that every sandbox has as /workspace; "" = one of its own, of memory
};

class Host {
 public:
  // Fails with the missing feature's name, and the way to get it, when this kernel cannot give the full isolation.
  static Result<Host> prepare(const HostOptions& options);

  const enter::HostFacts& facts() const { return facts_; }
  std::string layer_path(std::string_view digest) const { return options_.data_dir + "/images/layers/" + std::string(digest); }
  int execd() const { return execd_.get(); }
  const std::string& workspace() const { return options_.workspace; }
  int workspace_fd() const { return workspace_ ? workspace_.get() : -1; }
  std::vector<sock_filter> filter(SyscallProfile profile) const;

 private:
  Result<> open_workspace();

  HostOptions options_;
  enter::HostFacts facts_;
  Fd execd_;
  Fd dev_null_;
  Fd workspace_;
  std::vector<launch::Filter> filters_;
};

// A process in namespaces like those of a sandbox; its pidfd in `pidfd`. 0 in the new process, -1 with errno.
int divide(int& pidfd);
// Shows the caller's own user and group as the inner user in the user namespace of `pid`.
Result<> map_own_ids(std::int32_t pid);
// Not root: to the kernel its sandboxes would be root's.
Result<> check_user();
// Makes and ends such a process. The error says how a user gets what is refused.
Result<> check_namespaces();

}  // namespace osb::confine
