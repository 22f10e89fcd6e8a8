#include <linux/capability.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>

#include "base/text.h"
#include "cli/doctor/probes.h"
#include "sys/kernel_file.h"

namespace osb::cli {
namespace {

constexpr const char* kPart = "Privileges";

struct Needed {
  unsigned number;
  const char* name;
};
// What the launcher uses: namespaces and mounts, id maps, device nodes, owners of files, signals to sandboxes.
constexpr std::array kNeeded{Needed{CAP_SYS_ADMIN, "SYS_ADMIN"},
                             Needed{CAP_SETUID, "SETUID"},
                             Needed{CAP_SETGID, "SETGID"},
                             Needed{CAP_CHOWN, "CHOWN"},
                             Needed{CAP_KILL, "KILL"},
                             Needed{CAP_MKNOD, "MKNOD"},
                             Needed{CAP_DAC_OVERRIDE, "DAC_OVERRIDE"},
                             Needed{CAP_NET_ADMIN, "NET_ADMIN"}};

std::uint64_t effective_capabilities() {
  auto status = sys::read_file("/proc/self/status", 64 * 1024);
  if (!status) return 0;
  for (auto line : split(*status, '\n')) {
    if (!line.starts_with("CapEff:")) continue;
    auto digits = trim(line.substr(7));
    std::uint64_t bits = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
    return bits;
  }
  return 0;
}

Finding capabilities() {
  auto held = effective_capabilities();
  std::string lacking;
  for (const auto& cap : kNeeded)
    if ((held >> cap.number & 1) == 0) lacking += cat(lacking.empty() ? "" : " ", cap.name);
  if (lacking.empty()) return {kPart, "capabilities", Verdict::ok, true, "the launcher has what it needs; sandboxes get none of it", {}};
  return {kPart,
          "capabilities",
          Verdict::missing,
          true,
          cat("the launcher lacks ", lacking),
          "run as root, outside a container that drops capabilities"};
}

Finding root() {
  if (::geteuid() == 0) return {kPart, "root", Verdict::ok, true, "the launcher can make namespaces and groups", {}};
  return {kPart,
          "root",
          Verdict::missing,
          true,
          "doctor itself runs without root: what follows is what an ordinary user gets",
          "sudo opensandbox doctor"};
}

Finding raised_limits() {
  bool can = (effective_capabilities() >> CAP_SYS_RESOURCE & 1) != 0;
  if (can) return {kPart, "SYS_RESOURCE", Verdict::ok, false, "the daemon can protect itself from the out-of-memory killer", {}};
  return {kPart,
          "SYS_RESOURCE",
          Verdict::weak,
          false,
          "the daemon cannot protect itself from the out-of-memory killer",
          "give the service CAP_SYS_RESOURCE"};
}

Finding kernel() {
  utsname host{};
  ::uname(&host);
  int major = 0, minor = 0;
  std::sscanf(host.release, "%d.%d", &major, &minor);
  bool enough = major > 5 || (major == 5 && minor >= 14);
  if (enough) return {kPart, "kernel", Verdict::ok, true, cat("Linux ", host.release, " ", host.machine), {}};
  return {kPart,
          "kernel",
          Verdict::missing,
          true,
          cat("Linux ", host.release, " has no cgroup.kill or no id-mapped mounts"),
          "upgrade to Linux 5.14 or later"};
}

}  // namespace

std::vector<Finding> probe_privileges() { return {root(), capabilities(), raised_limits(), kernel()}; }

}  // namespace osb::cli
