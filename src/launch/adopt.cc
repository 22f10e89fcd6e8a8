// What a launcher before us left: living sandboxes are taken over, everything else of this instance is removed.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <set>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "launch/launcher.h"
#include "launch/run_dir.h"
#include "sys/fs_walk.h"
#include "sys/kernel_file.h"
#include "sys/raw.h"

namespace osb::launch {
namespace {

// The process of this group that is pid 1 of its own pid namespace; 0 when there is none.
std::int32_t find_init(const std::vector<std::int32_t>& pids) {
  for (auto pid : pids) {
    auto status = sys::read_file(cat("/proc/", pid, "/status"), 16384);
    if (!status) continue;
    for (auto line : split(*status, '\n'))
      if (line.starts_with("NSpid:") && (line.ends_with("\t1"))) return pid;
  }
  return 0;
}

// A record names the number of a range. A launcher of another version may have laid its ranges out differently; what the kernel maps
// is what the sandbox has.
bool has_ids_of(std::int32_t pid, std::uint32_t range) {
  auto map = sys::read_file(cat("/proc/", pid, "/uid_map"), 4096);
  unsigned inside = 1, outside = 0, count = 0;
  bool read = map && std::sscanf(map->c_str(), "%u %u %u", &inside, &outside, &count) == 3;
  return read && inside == 0 && outside == first_id_of(range);
}

}  // namespace

// Ids that are partly another range's: nobody may have those while it lives, so it is waited for, before anybody can ask for a sandbox.
void Launcher::end_foreign(const LedgerRecord& record) {
  auto group = Berths::group_name(record.range);
  log::warn("sandbox with ids that another launcher laid out is ended", {{"id", record.id}, {"range", record.range}});
  (void)groups_.kill(group);
  for (int round = 0; round < 400 && !groups_.pids(group).empty(); ++round) ::usleep(5000);
}

Result<> Launcher::adopt() {
  for (const auto& record : ledger_.all()) adopt_one(record);
  remove_strays();
  return Ok{};
}

void Launcher::adopt_one(const LedgerRecord& record) {
  Sandbox& sandbox = sandboxes_[record.id];
  sandbox.id = record.id;
  sandbox.recorded = true;
  sandbox.deadline = record.deadline_boot_nanos;
  sandbox.berth.range = record.range;
  sandbox.berth.group.name = Berths::group_name(record.range);
  sandbox.berth.group.cpu_nanos_before = record.cpu_nanos_before;
  bool same_boot = record.boot_id == boot_id_;
  if (same_boot && ranges_.mark_used(record.range)) sandbox.has_range = true;
  sandbox.pid = same_boot && !record.spare ? find_init(groups_.pids(sandbox.berth.group.name)) : 0;  // whoever could claim a spare is gone
  if (sandbox.pid != 0 && !has_ids_of(sandbox.pid, record.range)) {
    end_foreign(record);
    sandbox.pid = 0;
  }
  sandbox.pidfd = Fd(sandbox.pid == 0 ? -1 : sys::raw::pidfd_open(sandbox.pid));
  bool watched = sandbox.pidfd && watch(sandbox.pidfd.get(), {.what = Watched::pid, .client = 0, .id = record.id});
  if (!watched) {
    sandbox.pid = 0;
    if (same_boot) (void)groups_.kill(sandbox.berth.group.name);
    return kill(sandbox, wire::Cause::unknown);
  }
  sandbox.phase = Phase::live;
  thaw_adopted(sandbox);
  sandbox.frozen = groups_.frozen(sandbox.berth.group.name);
  if (sandbox.deadline != 0) schedule(sandbox.deadline, Chore::deadline, record.id);
  log::info("adopted sandbox", {{"id", record.id}, {"pid", sandbox.pid}});
}

// The killed need a moment to leave. Until the group is gone, nobody else gets the range that it is named after.
void Launcher::remove_stray(const std::string& name) {
  (void)groups_.kill(name);
  auto removed = groups_.remove(name);
  if (removed) return;
  Berth berth;
  berth.range = parse_int<std::uint32_t>(name.substr(name.find('-') + 1)).value_or(0);
  bool ours = Berths::group_name(berth.range) == name && ranges_.mark_used(berth.range);
  if (!ours) return log::error("stray cgroup stays", {{"group", name}, {"error", removed.error().what()}});
  berths_.put_off(std::move(berth));
  trim_reserve_later();
}

void Launcher::remove_strays() {
  std::set<std::string> used;
  for (const auto& [id, sandbox] : sandboxes_) used.insert(sandbox.berth.group.name);
  if (auto names = groups_.names()) {
    for (const auto& name : *names)
      if (!used.contains(name)) remove_stray(name);
  }
  std::string sockets = options_.host.run_dir + "/sandboxes";
  for (const auto& name : sys::fs::names_in(sockets))
    if (find(name.substr(0, name.find('.'))) == nullptr) ::unlink((sockets + "/" + name).c_str());
}

// Whoever comes from now on finds nobody, starts the next launcher, and that one waits for our lock.
void Launcher::close_door() {
  if (!listener_) return;
  unwatch(listener_.get());
  listener_.reset();
  ::unlink((options_.host.run_dir + "/launch.sock").c_str());
}

// An instance that ends for good takes its groups, ranges and run directory along.
void Launcher::leave_nothing() {
  if (!is_held(options_.host.run_dir, lock_) && ::access((options_.host.run_dir + "/lock").c_str(), F_OK) == 0)
    return log::error("another launcher has this instance; nothing is removed", {{"run_dir", options_.host.run_dir}});
  close_door();
  stems_.clear();  // they live in our groups
  berths_.clear();
  (void)groups_.leave_device_rules();
  // The stem of a launcher that was killed before us ends by itself, in a moment, and is in our groups until then.
  auto removed = groups_.remove_parents();
  for (int round = 0; round < 400 && !removed && removed.error().sys() == EBUSY; ++round) {
    ::usleep(5000);
    removed = groups_.remove_parents();
  }
  if (!removed) log::error("cannot remove our cgroups", {{"error", removed.error().what()}});
  ranges_.release_blocks();
  ::umount2(host_.work_dir().c_str(), MNT_DETACH);
  if (options_.private_instance) return remove_run_dir(options_.host.run_dir);
  ::unlink((options_.host.run_dir + "/ledger").c_str());
  for (const char* name : {"/work", "/sandboxes"}) ::rmdir((options_.host.run_dir + name).c_str());
}

void sweep_dead_private_instances(const std::string& run_root, const std::string& ranges_dir, const std::string& own_instance) {
  for (const auto& name : sys::fs::names_in(run_root)) {
    std::string run_dir = run_root + "/" + name;
    if (name == own_instance || !is_private(run_dir)) continue;
    auto lock = sys::open_at(AT_FDCWD, (run_dir + "/lock").c_str(), O_RDWR);
    if (!lock || ::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) continue;  // alive, or not ready yet
    auto groups = Cgroups::open(name, run_dir + "/cgroup2");
    if (!groups) continue;
    if (auto names = groups->names()) {
      for (const auto& group : *names) (void)groups->kill(group);
      // The killed need a moment to leave; a group that is still busy is removed by the next sweep.
      for (int round = 0; round < 200; ++round) {
        bool busy = false;
        for (const auto& group : *names) busy = !groups->remove(group) || busy;
        if (!busy) break;
        ::usleep(5000);
      }
    }
    if (!groups->remove_parents()) continue;
    if (auto ranges = IdRanges::open(ranges_dir, name)) ranges->release_blocks();
    remove_run_dir(run_dir);
    log::info("removed what a dead private instance left", {{"instance", name}});
  }
}

}  // namespace osb::launch
