// The file system of one sandbox, built by its own first process. Sources are always objects the launcher made or
// paths it owns; targets are looked up inside the new root without following a symlink.
//
// Each function is one step of enter(): true, or false with errno. Safe after clone in the single-threaded launcher.
#pragma once
#include <span>

#include "enter/plan.h"

namespace osb::enter {

// Where the mounts go that each sandbox has for itself. All lie in the scaffold, the topmost layer of every root, as real files and
// directories.
inline constexpr const char* kOwnPlaces[] = {"proc", "dev/mqueue", "dev/shm", "etc/hostname", "etc/machine-id",
                                             "tmp",  "var/tmp",    "run",     "workspace",    "home/user"};

// The pseudo terminals of a sandbox: a mount that lies nowhere, -1 with errno.
int new_terminals(std::uint32_t first_id);

class Mounts {
 public:
  explicit Mounts(const EnterPlan& plan) : plan_(plan) {}

  bool go_to_work();  // before all others: names in the launcher's work directory
  bool writable_layer();
  bool name_files();  // etc/hostname and etc/machine-id, in the writable layer
  bool image_layers();
  bool root_overlay();
  bool host_view();
  bool restored_places();
  bool volume_sources();
  bool volume_mounts();
  bool switch_root();
  bool proc();
  bool proc_masks();
  bool sys();
  bool dev();
  bool etc();
  bool scratch();

  // The places that the sandbox may write, as mounts; for rules about them.
  std::span<const int> writable_places() const { return {sources_, writable_count}; }

 private:
  static constexpr std::size_t kMaxHostDirectories = 8;
  // Those the sandbox may write come first.
  enum Source {
    tmp,
    var_tmp,
    run,
    shm,
    queues,
    workspace,
    home,
    writable_count,
    hostname = writable_count,
    machine_id,
    hosts,
    resolv_conf,
    sys_tree,
    dev_tree,
    source_count
  };

  int inside_volume(int top, const std::string& sub_path);
  bool take_named(std::size_t i);
  bool needs_point(const std::string& path) const;
  bool make_point(const std::string& path, bool file);
  int target_for(const std::string& path, bool file);
  bool take_sources();
  bool memory_store();
  bool disk_store();
  bool fill_store();
  bool memory_scratch();
  bool fill_scratch();
  bool take(Source as, const char* path, std::uint64_t attributes = 0);
  bool make_queues();
  bool own(int dir, const char* name, std::uint32_t inner_id, unsigned mode);
  bool attach(int mount, const char* target);
  bool attach_own(int mount, const char* target);  // to one of kOwnPlaces
  struct Lower {                                   // directories of an overlay, "l1:l2:..."
    char text[1024] = {};
    std::size_t used = 0;
    bool add(const char* format, std::size_t number, const char* path = "");
  };
  bool add_snapshots(Lower& lower, const char* path);
  int overlay(const char* lower, const char* upper, const char* work, bool writable);
  bool held() const { return plan_.root >= 0; }  // the root comes whole, with what it holds at usr, sys, dev and etc
  // The narrowest profile sees processes and nothing of the machine: then there is nothing to cover.
  bool processes_only() const { return plan_.policy.syscalls == SyscallProfile::minimal; }
  bool on_disk() const { return plan_.disk_socket >= 0; }
  bool writable() const { return plan_.policy.root == RootMode::writable; }
  std::uint32_t owner() const { return plan_.policy.user == UserMode::root ? 0 : kPayloadId; }

  const EnterPlan& plan_;
  int store_ = -1;    // directory of the writable layer
  int scratch_ = -1;  // directory of the memory-backed scratch; the store itself where that is memory
  int trees_[kMaxVolumes] = {};
  bool points_ = false;  // mount points of volumes lie in a layer of their own
  int root_ = -1;
  int proc_ = -1;
  int host_[kMaxHostDirectories] = {};
  int sources_[source_count] = {};
};

}  // namespace osb::enter
