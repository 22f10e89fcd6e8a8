// What the launcher prepares once and every sandbox shares: its private mount namespace, the mount points and sources
// it builds roots from, the sealed execd, the compiled filters. Nothing here is visible in the host's mount namespace.
#pragma once
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "enter/plan.h"
#include "launch/filter.h"
#include "model/limits.h"
#include "model/policy.h"

namespace osb::launch {

struct HostOptions {
  std::string instance;
  std::string run_dir;     // /run/opensandbox/<instance>
  std::string ranges_dir;  // /run/opensandbox/ranges, shared by all instances of the host
  std::string data_dir;    // /var/lib/opensandbox: images/layers, scaffold, disks; may be shared by instances
  std::string execd;       // path of opensandbox-execd
};

class Host {
 public:
  // Fails with the missing feature's name when this kernel cannot give the full isolation.
  static Result<Host> prepare(const HostOptions& options);

  const HostOptions& options() const { return options_; }
  const enter::HostFacts& facts() const { return facts_; }
  const std::string& work_dir() const { return facts_.work_dir; }
  std::string layer_path(std::string_view digest) const { return options_.data_dir + "/images/layers/" + std::string(digest); }
  std::string scaffold_path() const { return options_.data_dir + "/scaffold"; }
  std::string volumes_path() const { return options_.data_dir + "/volumes"; }
  std::string disks_path() const { return options_.data_dir + "/disks"; }
  const Fd& execd() const { return execd_; }
  int work() const { return work_.get(); }
  bool holds_roots() const { return holds_roots_; }
  bool is_whole() const;                                           // nobody has removed what sandboxes are built from
  bool works_in(std::uint64_t device, std::uint64_t inode) const;  // whether that is the data directory, as we see it
  std::vector<sock_filter> filter(SyscallProfile profile) const;

  // Directory (relative to work_dir) with sys/, proc/ and etc/ for these limits; made on first use.
  Result<std::string> shape(const Limits& limits);

 private:
  Result<> build_work_dir();
  Result<> build_scaffold();
  Result<> build_dev();
  Result<> mount_memory(const std::string& name);  // a small tmpfs at work_dir/name
  Result<> make_read_only(const std::string& name);
  Result<> compile_filters();
  void list_proc();
  void forget_oldest_shape();

  HostOptions options_;
  enter::HostFacts facts_;
  Fd work_;
  Fd execd_;
  Fd dev_null_;
  std::vector<Filter> filters_;
  std::map<Limits, std::string> shapes_;
  std::deque<Limits> shape_order_;  // oldest first
  unsigned next_shape_ = 0;
  bool holds_roots_ = false;
};

}  // namespace osb::launch
