#include "launch/cgroups.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/text.h"
#include "launch/device_filter.h"
#include "sys/kernel_file.h"

namespace osb::launch {
namespace {

struct MountedHierarchies {
  std::string v2;                                       // mount point or empty
  std::vector<std::pair<std::string, std::string>> v1;  // controller, mount point
};

MountedHierarchies parse_mounts(std::string_view mounts) {
  MountedHierarchies found;
  for (auto line : split(mounts, '\n')) {
    auto words = split(line, ' ');
    if (words.size() < 4) continue;
    if (words[2] == "cgroup2") found.v2 = words[1];
    if (words[2] != "cgroup") continue;
    for (auto option : split(words[3], ','))
      if (option == "memory" || option == "cpu" || option == "pids" || option == "blkio" || option == "devices")
        found.v1.emplace_back(option, words[1]);
  }
  return found;
}

// Throttling is a property of whole disks: a partition is limited through its disk. Empty for file systems without one.
std::string disk_below(const char* path) {
  struct stat info{};
  if (::stat(path, &info) != 0 || major(info.st_dev) == 0) return {};
  std::string block = cat("/sys/dev/block/", major(info.st_dev), ":", minor(info.st_dev));
  if (::access((block + "/partition").c_str(), F_OK) == 0) {
    auto parent = sys::read_file(block + "/../dev", 64);
    return parent ? std::string(split(*parent, '\n')[0]) : std::string();
  }
  return ::access(block.c_str(), F_OK) == 0 ? cat(major(info.st_dev), ":", minor(info.st_dev)) : std::string();
}

std::string path_in(std::string_view name, std::string_view file) { return cat(name, "/", file); }

// cpu.max and cfs quota share one period; a shorter one would cost the scheduler more than it gives.
constexpr std::uint64_t kCpuPeriodMicros = 100'000;
constexpr std::uint64_t cpu_quota_micros(const Limits& limits) { return limits.cpu_millis * kCpuPeriodMicros / 1000; }

// The first word of a kernel file as a number; "max" and a file that is not there are 0.
std::uint64_t number_in(std::string_view text) { return parse_int<std::uint64_t>(text.substr(0, text.find_first_of(" \n"))).value_or(0); }

// nullopt when it cannot be read: who decides by it must not take that for nothing.
std::optional<std::uint64_t> number_in(const Fd& file) {
  auto text = sys::reread(file.get());
  return text ? std::optional(number_in(std::string_view(*text))) : std::nullopt;
}

std::optional<std::uint64_t> count_in(const Fd& file, std::string_view key) {
  auto text = sys::reread(file.get());
  return text ? std::optional(sys::value_of(*text, key)) : std::nullopt;
}

Result<Fd> make_parent(const Fd& root, const std::string& name) {
  CHECK_OK(sys::make_dir_at(root.get(), name.c_str(), 0755));
  return sys::open_at(root.get(), name.c_str(), O_RDONLY | O_DIRECTORY);
}

std::vector<std::string> child_names(const Fd& parent) {
  std::vector<std::string> out;
  int copy = ::openat(parent.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* dir = copy < 0 ? nullptr : ::fdopendir(copy);
  if (dir == nullptr) return out;
  while (auto* entry = ::readdir(dir))
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') out.emplace_back(entry->d_name);
  ::closedir(dir);
  return out;
}

}  // namespace

Result<Cgroups> Cgroups::open(const std::string& instance, const std::string& private_v2_mount) {
  Cgroups groups;
  groups.name_ = "opensandbox-" + instance;
  groups.io_device_ = disk_below("/");
  TRY(auto mounts, sys::read_file("/proc/self/mounts"));
  auto found = parse_mounts(mounts);
  if (found.v2.empty()) {
    CHECK_OK(sys::make_dirs(private_v2_mount, 0700));
    if (::mount("cgroup2", private_v2_mount.c_str(), "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
      return Error::from_errno("mount cgroup2", errno);
    found.v2 = private_v2_mount;
  }
  TRY(groups.v2_.root, sys::open_at(AT_FDCWD, found.v2.c_str(), O_RDONLY | O_DIRECTORY));
  bool v1_memory = std::any_of(found.v1.begin(), found.v1.end(), [](const auto& h) { return h.first == "memory"; });
  groups.on_v2_ = !v1_memory;
  CHECK_OK(groups.open_v2());
  if (v1_memory) CHECK_OK(groups.open_v1(found.v1));
  return groups;
}

Result<> Cgroups::open_v2() {
  static constexpr const char* kControllers = "+memory +cpu +pids +io";
  if (on_v2_) {
    auto enabled = sys::write_at(v2_.root.get(), "cgroup.subtree_control", kControllers);
    if (!enabled) return std::move(enabled).error().in("enable cgroup v2 controllers");
  }
  TRY(v2_.parent, make_parent(v2_.root, name_));
  CHECK_OK(sys::write_at(v2_.parent.get(), "cgroup.max.depth", "1"));  // a sandbox's group has no groups below it
  if (on_v2_) {
    auto enabled = sys::write_at(v2_.parent.get(), "cgroup.subtree_control", kControllers);
    if (!enabled) return std::move(enabled).error().in("enable cgroup v2 controllers for sandboxes");
    // All sandboxes together weigh half of what the host's own work does; among each other they are equal.
    CHECK_OK(sys::write_at(v2_.parent.get(), "cpu.weight", "50"));
    CHECK_OK(attach_device_filter(v2_.parent.get()));
  }
  return Ok{};
}

Result<> Cgroups::open_v1(const std::vector<std::pair<std::string, std::string>>& mounts) {
  for (const char* needed : {"memory", "cpu", "pids", "blkio", "devices"}) {
    auto at = std::find_if(mounts.begin(), mounts.end(), [&](const auto& m) { return m.first == needed; });
    if (at == mounts.end()) return Error(Errc::unavailable, cat("cgroup v1 controller ", needed, " is not mounted"));
    TRY(auto root, sys::open_at(AT_FDCWD, at->second.c_str(), O_RDONLY | O_DIRECTORY));
    TRY(auto parent, make_parent(root, name_));
    if (std::string_view(needed) == "devices") {
      CHECK_OK(sys::write_at(parent.get(), "devices.deny", "a"));
      for (auto device : kAllowedDevices)
        CHECK_OK(sys::write_at(parent.get(), "devices.allow", cat("c ", device.major, ":", device.minor, " rw")));
      CHECK_OK(sys::write_at(parent.get(), "devices.allow", cat("c ", kPtsMajor, ":* rw")));
      TRY(devices_tasks_, sys::open_at(parent.get(), "tasks", O_WRONLY));
      devices_root_ = std::move(root);
      continue;
    }
    // New groups inherit swappiness. All sandboxes together weigh half of the host's own work, and are equal among each other.
    if (std::string_view(needed) == "memory") CHECK_OK(sys::write_at(parent.get(), "memory.swappiness", "0"));
    if (std::string_view(needed) == "cpu") CHECK_OK(sys::write_at(parent.get(), "cpu.shares", "512"));
    v1_.push_back({needed, std::move(root), std::move(parent)});
  }
  return Ok{};
}

std::string Cgroups::text_of(const Hierarchy& hierarchy, std::string_view name, const char* file) {
  auto content = sys::read_at(hierarchy.parent.get(), path_in(name, file).c_str());
  return content ? *std::move(content) : std::string();
}

Cgroups::Hierarchy* Cgroups::find(std::string_view controller) {
  for (auto& h : v1_)
    if (h.controller == controller) return &h;
  return nullptr;
}

Result<Group> Cgroups::make(const std::string& name) {
  CHECK_OK(make_directories(name));
  auto group = open(name);
  if (!group) (void)remove(name);
  return group;
}

// An existing group belongs to somebody else's life: joining it could put foreign processes under our kill.
Result<> Cgroups::make_directories(const std::string& name) {
  std::vector<const Hierarchy*> made;
  auto make_in = [&](const Hierarchy& h) {
    if (::mkdirat(h.parent.get(), name.c_str(), 0755) == 0) made.push_back(&h);
    return !made.empty() && made.back() == &h;
  };
  bool all = make_in(v2_) && std::ranges::all_of(v1_, make_in);
  if (all) return Ok{};
  auto error = Error::from_errno(cat("mkdir cgroup ", name), errno);
  for (const auto* h : made) ::unlinkat(h->parent.get(), name.c_str(), AT_REMOVEDIR);
  return error;
}

Result<Group> Cgroups::open(const std::string& name) {
  Group group;
  group.name = name;
  CHECK_OK(open_files(group));
  return group;
}

Result<> Cgroups::open_files(Group& group) {
  auto open_in = [&](const Hierarchy& h, const char* file, int flags) {
    return sys::open_at(h.parent.get(), path_in(group.name, file).c_str(), flags);
  };
  TRY(group.cpu_stat, open_in(v2_, "cpu.stat", O_RDONLY));
  if (on_v2_) {
    TRY(group.oom_counter, open_in(v2_, "memory.events", O_RDONLY));
    TRY(group.memory, open_in(v2_, "memory.current", O_RDONLY));
    TRY(group.pids, open_in(v2_, "pids.current", O_RDONLY));
    // Kernels before 6.12 have a peak that cannot begin anew; a group there serves one sandbox.
    if (auto peak = open_in(v2_, "memory.peak", O_RDWR)) group.memory_peak = *std::move(peak);
  } else {
    for (const auto& h : v1_) {
      TRY(auto tasks, open_in(h, "tasks", O_WRONLY));
      group.tasks.push_back(std::move(tasks));
    }
    TRY(group.throttled, open_in(*find("cpu"), "cpu.stat", O_RDONLY));
    TRY(group.oom_counter, open_in(*find("memory"), "memory.oom_control", O_RDONLY));
    TRY(group.memory, open_in(*find("memory"), "memory.usage_in_bytes", O_RDONLY));
    TRY(group.memory_peak, open_in(*find("memory"), "memory.max_usage_in_bytes", O_RDWR));
    TRY(group.pids, open_in(*find("pids"), "pids.current", O_RDONLY));
  }
  TRY(group.v2, sys::open_at(v2_.parent.get(), group.name.c_str(), O_RDONLY | O_DIRECTORY));
  return Ok{};
}

Result<> Cgroups::limit(Group& group, const Limits& limits) {
  if (group.limits == limits) return Ok{};
  group.limits.reset();
  CHECK_OK(on_v2_ ? limit_v2(group.name, limits) : limit_v1(group.name, limits));
  group.limits = limits;
  return Ok{};
}

bool Cgroups::populated(const Group& group) { return number_in(group.pids).value_or(1) != 0; }

// Pages of files it was first to read stay charged to a group, and the kernel's memory for names it looked up. A little of
// that is everywhere; more would be a limit the next sandbox did not get.
constexpr std::uint64_t kChargesLeft = 2 << 20;

bool Cgroups::renew(Group& group) {
  auto charged = number_in(group.memory);
  auto killed = count_in(group.oom_counter, "oom_kill");
  auto throttled = throttled_nanos(group);
  auto used = cpu_nanos(group);
  if (!group.memory_peak || !charged || !killed || !throttled || !used) return false;
  if (*charged > kChargesLeft || *killed != 0 || *throttled != 0) return false;
  if (::pwrite(group.memory_peak.get(), "0", 1, 0) != 1) return false;
  group.cpu_nanos_before = *used;
  return true;
}

std::optional<std::uint64_t> Cgroups::cpu_nanos(const Group& group) const {
  auto micros = count_in(group.cpu_stat, "usage_usec");
  return micros ? std::optional(*micros * 1000) : std::nullopt;
}

std::optional<std::uint64_t> Cgroups::throttled_nanos(const Group& group) const {
  if (!on_v2_) return count_in(group.throttled, "throttled_time");
  auto micros = count_in(group.cpu_stat, "throttled_usec");
  return micros ? std::optional(*micros * 1000) : std::nullopt;
}

Result<> Cgroups::limit_v2(std::string_view name, const Limits& limits) {
  int parent = v2_.parent.get();
  auto set = [&](const char* file, const std::string& value) { return sys::write_at(parent, path_in(name, file).c_str(), value); };
  CHECK_OK(set("memory.max", cat(limits.memory_bytes)));
  // Just below the limit: file pages are written back before the kernel has to kill. Further below, a bomb that cannot be
  // reclaimed would be slowed down for half a minute instead of dying.
  CHECK_OK(set("memory.high", cat(limits.memory_bytes - limits.memory_bytes / 20)));
  if (::faccessat(parent, path_in(name, "memory.swap.max").c_str(), F_OK, 0) == 0) CHECK_OK(set("memory.swap.max", "0"));
  CHECK_OK(set("cpu.max", cat(cpu_quota_micros(limits), " ", kCpuPeriodMicros)));
  CHECK_OK(set("pids.max", cat(limits.pids)));
  if (!io_device_.empty()) {
    auto bps = limits.io_bytes_per_second;
    auto iops = limits.io_operations_per_second;
    CHECK_OK(set("io.max", cat(io_device_, " rbps=", bps, " wbps=", bps, " riops=", iops, " wiops=", iops)));
  }
  return Ok{};
}

Result<> Cgroups::limit_v1(std::string_view name, const Limits& limits) {
  auto set = [&](const char* controller, const char* file, const std::string& value) {
    return sys::write_at(find(controller)->parent.get(), path_in(name, file).c_str(), value);
  };
  // Of the two limits the one without swap may never be above the other; a group that had lower ones gets room first.
  (void)set("memory", "memory.memsw.limit_in_bytes", "-1");
  CHECK_OK(set("memory", "memory.limit_in_bytes", cat(limits.memory_bytes)));
  // Without swap accounting the file is missing; the inherited swappiness of 0 then keeps the group out of swap.
  auto memsw = set("memory", "memory.memsw.limit_in_bytes", cat(limits.memory_bytes));
  if (!memsw && memsw.error().sys() != ENOENT && memsw.error().sys() != EOPNOTSUPP) return memsw;
  CHECK_OK(set("cpu", "cpu.cfs_quota_us", cat(cpu_quota_micros(limits))));
  CHECK_OK(set("pids", "pids.max", cat(limits.pids)));
  if (io_device_.empty()) return Ok{};
  for (const char* file : {"blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device"})
    CHECK_OK(set("blkio", file, cat(io_device_, " ", limits.io_bytes_per_second)));
  for (const char* file : {"blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device"})
    CHECK_OK(set("blkio", file, cat(io_device_, " ", limits.io_operations_per_second)));
  return Ok{};
}

Result<> Cgroups::join_device_rules() {
  if (on_v2_) return Ok{};
  if (::write(devices_tasks_.get(), "0", 1) != 1) return Error::from_errno("join device group", errno);
  return Ok{};
}

Result<> Cgroups::leave_device_rules() {
  if (on_v2_) return Ok{};
  return sys::write_at(devices_root_.get(), "tasks", "0");
}

Result<> Cgroups::kill(std::string_view name) { return sys::write_at(v2_.parent.get(), path_in(name, "cgroup.kill").c_str(), "1"); }

void Cgroups::hasten_death(std::string_view name) {
  // Best effort: each line only speeds up what the kill already made certain.
  auto set = [&](int parent, const char* file, const char* value) { (void)sys::write_at(parent, path_in(name, file).c_str(), value); };
  if (on_v2_) {
    set(v2_.parent.get(), "pids.max", "0");
    set(v2_.parent.get(), "cpu.max", "max");
    set(v2_.parent.get(), "cpu.weight", "1000");
    return;
  }
  set(find("pids")->parent.get(), "pids.max", "0");
  set(find("cpu")->parent.get(), "cpu.cfs_quota_us", "-1");
  set(find("cpu")->parent.get(), "cpu.shares", "10240");
}

Result<> Cgroups::freeze(std::string_view name, bool frozen) {
  return sys::write_at(v2_.parent.get(), path_in(name, "cgroup.freeze").c_str(), frozen ? "1" : "0");
}

bool Cgroups::frozen(std::string_view name) {
  auto events = sys::read_at(v2_.parent.get(), path_in(name, "cgroup.events").c_str());
  return events && sys::value_of(*events, "frozen") == 1;
}

Result<> Cgroups::remove(std::string_view name) {
  std::string directory(name);
  auto remove_in = [&](const Hierarchy& h) -> Result<> {
    if (::unlinkat(h.parent.get(), directory.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
      return Error::from_errno(cat("rmdir cgroup ", h.controller, " ", name), errno);
    return Ok{};
  };
  for (const auto& h : v1_) CHECK_OK(remove_in(h));
  return remove_in(v2_);
}

void Cgroups::settle_usage() { (void)sys::read_at(v2_.parent.get(), "cpu.stat", 4096); }

CgroupUsage Cgroups::usage(const Group& group) {
  CgroupUsage usage = final_usage(group);
  usage.cpu_throttled_nanos = throttled_nanos(group).value_or(0);
  usage.memory_bytes = number_in(group.memory).value_or(0);
  usage.pids = number_in(group.pids).value_or(0);
  on_v2_ ? read_v2(group, usage) : read_v1(group, usage);
  return usage;
}

CgroupUsage Cgroups::final_usage(const Group& group) {
  CgroupUsage usage;
  usage.cpu_nanos = std::max(cpu_nanos(group).value_or(0), group.cpu_nanos_before) - group.cpu_nanos_before;
  usage.memory_peak_bytes = number_in(group.memory_peak).value_or(0);
  usage.oom_kills = count_in(group.oom_counter, "oom_kill").value_or(0);
  return usage;
}

void Cgroups::read_v2(const Group& group, CgroupUsage& usage) {
  usage.cpu_limit_millis = number_in(text_of(v2_, group.name, "cpu.max")) * 1000 / kCpuPeriodMicros;
  usage.memory_limit_bytes = number_in(text_of(v2_, group.name, "memory.max"));
  usage.memory_reclaimable_bytes = sys::value_of(text_of(v2_, group.name, "memory.stat"), "inactive_file");
  usage.pids_limit = number_in(text_of(v2_, group.name, "pids.max"));
}

void Cgroups::read_v1(const Group& group, CgroupUsage& usage) {
  usage.cpu_limit_millis = number_in(text_of(*find("cpu"), group.name, "cpu.cfs_quota_us")) * 1000 / kCpuPeriodMicros;
  usage.memory_limit_bytes = number_in(text_of(*find("memory"), group.name, "memory.limit_in_bytes"));
  usage.memory_reclaimable_bytes = sys::value_of(text_of(*find("memory"), group.name, "memory.stat"), "total_inactive_file");
  usage.pids_limit = number_in(text_of(*find("pids"), group.name, "pids.max"));
}

std::vector<std::int32_t> Cgroups::pids(std::string_view name) {
  std::vector<std::int32_t> pids;
  auto text = sys::read_at(v2_.parent.get(), path_in(name, "cgroup.procs").c_str());
  if (!text) return pids;
  for (auto line : split(*text, '\n'))
    if (auto pid = parse_int<std::int32_t>(line)) pids.push_back(*pid);
  return pids;
}

Result<std::vector<std::string>> Cgroups::names() {
  std::set<std::string> all;
  auto collect = [&](const Hierarchy& h) {
    for (auto& name : child_names(h.parent)) all.insert(std::move(name));
  };
  collect(v2_);
  for (const auto& h : v1_) collect(h);
  return std::vector<std::string>(all.begin(), all.end());
}

Result<> Cgroups::remove_parents() {
  auto remove_from = [&](const Fd& root) -> Result<> {
    if (root && ::unlinkat(root.get(), name_.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
      return Error::from_errno("rmdir " + name_, errno);
    return Ok{};
  };
  for (const auto& h : v1_) CHECK_OK(remove_from(h.root));
  CHECK_OK(remove_from(devices_root_));
  return remove_from(v2_.root);
}

}  // namespace osb::launch
