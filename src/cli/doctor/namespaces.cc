#include <sched.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "cli/doctor/probes.h"

namespace osb::cli {
namespace {

constexpr const char* kPart = "Namespaces";
constexpr std::uint64_t kComfortable = 1024;

struct Kind {
  const char* name;
  int flag;
  const char* means;
};
constexpr std::array kKinds{
    Kind{"user namespace", CLONE_NEWUSER, "a sandbox has ids of its own; its root is nobody on this host"},
    Kind{"mount namespace", CLONE_NEWNS, "a sandbox sees only the files it was given"},
    Kind{"pid namespace", CLONE_NEWPID, "a sandbox sees and signals only its own processes"},
    Kind{"network namespace", CLONE_NEWNET, "a sandbox has no network at all"},
    Kind{"ipc namespace", CLONE_NEWIPC, "shared memory and queues stay inside"},
    Kind{"uts namespace", CLONE_NEWUTS, "a sandbox has a host name of its own"},
    Kind{"cgroup namespace", CLONE_NEWCGROUP, "a sandbox does not see how the host groups its processes"},
};

Finding probe(const Kind& kind) {
  int failed = errno_in_child([&] { return ::unshare(kind.flag) == 0 ? 0 : errno; });
  if (failed == 0) return {kPart, kind.name, Verdict::ok, true, kind.means, {}};
  std::string fix = failed == ENOSPC
                        ? "sysctl -w user.max_user_namespaces=65536 user.max_mnt_namespaces=65536 user.max_net_namespaces=65536"
                    : failed == EINVAL ? "use a kernel built with CONFIG_NAMESPACES and all its kinds"
                                       : "run as root, outside a container that forbids it";
  return {kPart, kind.name, Verdict::missing, true, cat("cannot be made: ", std::strerror(failed)), fix};
}

Finding limit() {
  auto text = first_line("/proc/sys/user/max_user_namespaces");
  auto number = parse_int<std::uint64_t>(text);
  if (!number) return {kPart, "number of them", Verdict::ok, false, "not limited here", {}};
  auto fix = "sysctl -w user.max_user_namespaces=65536";
  if (*number == 0) return {kPart, "number of them", Verdict::missing, true, "user.max_user_namespaces is 0", fix};
  if (*number < kComfortable)
    return {kPart, "number of them", Verdict::weak, false, cat("at most ", *number, " sandboxes at one time"), fix};
  return {kPart, "number of them", Verdict::ok, false, cat("up to ", *number, " at one time"), {}};
}

}  // namespace

std::vector<Finding> probe_namespaces() {
  std::vector<Finding> out;
  for (const Kind& kind : kKinds) out.push_back(probe(kind));
  out.push_back(limit());
  return out;
}

}  // namespace osb::cli
