#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "cli/doctor/host_cgroups.h"
#include "cli/doctor/probes.h"
#include "sys/kernel_file.h"

namespace osb::cli {
namespace {

constexpr const char* kPart = "Cgroups";

// A group of our own in the v2 hierarchy, removed again; tells which control files a sandbox would have.
int try_group(const std::string& hierarchy) {
  auto path = cat(hierarchy, "/opensandbox-doctor-", ::getpid());
  if (::mkdir(path.c_str(), 0700) != 0) return errno;
  bool complete = ::access(cat(path, "/cgroup.kill").c_str(), W_OK) == 0 && ::access(cat(path, "/cgroup.freeze").c_str(), W_OK) == 0;
  ::rmdir(path.c_str());
  return complete ? 0 : ENOSYS;
}

int try_private_v2() {
  char directory[] = "/tmp/opensandbox-doctor-XXXXXX";
  if (::mkdtemp(directory) == nullptr) return errno;
  int failed = errno_in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno;
    if (::mount("cgroup2", directory, "cgroup2", 0, nullptr) != 0) return errno;
    return try_group(directory);
  });
  ::rmdir(directory);
  return failed;
}

Finding kill_and_freeze(const HostCgroups& host) {
  int failed = host.v2.empty() ? try_private_v2() : try_group(host.v2);
  auto where = host.v2.empty() ? std::string("a private cgroup2 mount") : host.v2;
  if (failed == 0)
    return {kPart, "kill and freeze", Verdict::ok, true, cat("cgroup v2 (", where, "): a whole sandbox is killed or paused at once"), {}};
  std::string why =
      failed == ENOSYS ? "this kernel's cgroup v2 has no cgroup.kill" : cat("cgroup v2 cannot be used: ", std::strerror(failed));
  return {kPart,
          "kill and freeze",
          Verdict::missing,
          true,
          why,
          failed == ENOSYS ? "upgrade to Linux 5.14 or later" : "mount -t cgroup2 none /sys/fs/cgroup"};
}

Finding controller(const HostCgroups& host, const std::string& name, bool required, const std::string& means) {
  auto v1_name = name == "io" ? std::string("blkio") : name;
  bool on_v1 = host.has_v1(v1_name);
  if (host.uses_v1() ? on_v1 : host.has_v2(name))
    return {kPart, cat(name, " controller"), Verdict::ok, required, cat(means, on_v1 ? " (v1)" : " (v2)"), {}};
  auto fix = host.uses_v1() ? cat("mount -t cgroup -o ", v1_name, " cgroup /sys/fs/cgroup/", v1_name)
                            : cat("boot with cgroup_no_v1=all, then: echo +", name, " > ", host.v2, "/cgroup.subtree_control");
  return {kPart, cat(name, " controller"), required ? Verdict::missing : Verdict::weak, required, cat("no limit possible: ", means), fix};
}

Finding layout(const HostCgroups& host) {
  if (!host.uses_v1()) return {kPart, "layout", Verdict::ok, false, "cgroup v2 only", {}};
  return {kPart,
          "layout",
          Verdict::weak,
          false,
          "hybrid: limits on v1, kill and freeze on v2; buffered writes to disk are not throttled",
          "boot with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all"};
}

}  // namespace

bool HostCgroups::has_v1(const std::string& name) const {
  return std::ranges::any_of(v1, [&](const auto& mounted) { return mounted.first == name; });
}
bool HostCgroups::has_v2(const std::string& name) const { return std::ranges::find(v2_controllers, name) != v2_controllers.end(); }

HostCgroups find_host_cgroups() {
  HostCgroups out;
  auto mounts = sys::read_file("/proc/self/mounts");
  if (!mounts) return out;
  for (auto line : split(*mounts, '\n')) {
    auto words = split(line, ' ');
    if (words.size() < 4) continue;
    if (words[2] == "cgroup2" && out.v2.empty()) out.v2 = words[1];
    if (words[2] != "cgroup") continue;
    for (auto option : split(words[3], ','))
      for (auto name : {"memory", "cpu", "pids", "blkio", "devices", "freezer", "cpuset", "cpuacct", "net_cls", "perf_event", "hugetlb"})
        if (option == name) out.v1.emplace_back(name, std::string(words[1]));
    if (words[3].contains("name=")) out.v1.emplace_back(std::string(words[3].substr(words[3].find("name="))), std::string(words[1]));
  }
  auto available = out.v2.empty() ? std::string() : first_line(cat(out.v2, "/cgroup.controllers"));
  for (auto name : split(available, ' '))
    if (!name.empty()) out.v2_controllers.emplace_back(name);
  return out;
}

std::vector<Finding> probe_cgroups() {
  auto host = find_host_cgroups();
  return {layout(host),
          kill_and_freeze(host),
          controller(host, "memory", true, "memory of a sandbox is limited"),
          controller(host, "cpu", true, "processor time of a sandbox is limited"),
          controller(host, "pids", true, "a fork bomb stays small"),
          controller(host, "io", false, "disk traffic of a sandbox is limited")};
}

}  // namespace osb::cli
