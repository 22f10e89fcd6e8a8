// What the launcher prepares once and every sandbox shares: its private mount namespace, the mount points and sources
// it builds roots from, the sealed execd, the compiled filters. Nothing here is visible in the host's mount namespace.
#pragma once
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
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

// A directory of the host that the `host` image shows, e.g. /usr at "usr".
struct HostDirectory {
  std::string path;
  std::string name;
};

class Host {
 public:
  // Fails with the missing feature's name when this kernel cannot give the full isolation.
  static Result<Host> prepare(const HostOptions& options);

  const HostOptions& options() const { return options_; }
  const std::string& work_dir() const { return work_dir_; }
  std::string layer_path(std::string_view digest) const { return options_.data_dir + "/images/layers/" + std::string(digest); }
  std::string scaffold_path() const { return options_.data_dir + "/scaffold"; }
  std::string volumes_path() const { return options_.data_dir + "/volumes"; }
  std::string disks_path() const { return options_.data_dir + "/disks"; }
  const Fd& execd() const { return execd_; }
  const Fd& dev_null() const { return dev_null_; }
  int landlock_abi() const { return landlock_abi_; }
  int last_capability() const { return last_capability_; }
  const sock_fprog& filter(SyscallProfile profile) const { return programs_[static_cast<std::size_t>(profile)]; }
  const std::vector<HostDirectory>& host_directories() const { return host_directories_; }
  const std::vector<const char*>& proc_masks() const { return proc_masks_; }
  const std::vector<const char*>& proc_dir_masks() const { return proc_dir_masks_; }
  const std::vector<const char*>& proc_read_only() const { return proc_read_only_; }

  // Directory (relative to work_dir) with sys/, proc/ and etc/ for these limits; made on first use.
  Result<std::string> shape(const Limits& limits);

 private:
  Result<> build_work_dir();
  Result<> build_scaffold();
  Result<> build_dev();
  Result<> mount_memory(const std::string& name);  // a small tmpfs at work_dir/name
  Result<> make_read_only(const std::string& name);
  Result<> seal_execd();
  Result<> compile_filters();
  void list_proc();
  void forget_oldest_shape();

  HostOptions options_;
  std::string work_dir_;
  Fd work_;
  Fd execd_;
  Fd dev_null_;
  int landlock_abi_ = 0;
  int last_capability_ = 0;
  std::vector<Filter> filters_;
  std::vector<sock_fprog> programs_;  // borrow filters_, whose code stays where it is when Host moves
  std::vector<HostDirectory> host_directories_;
  std::vector<const char*> proc_masks_, proc_dir_masks_, proc_read_only_;
  std::map<Limits, std::string> shapes_;
  std::deque<Limits> shape_order_;  // oldest first
  unsigned next_shape_ = 0;
};

}  // namespace osb::launch
