#include "launch/namespaces.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "launch/id_range.h"
#include "sys/kernel_file.h"
#include "sys/raw.h"

namespace osb::launch {
namespace {

// Leaves the caller's network namespace for the length of a block. Coming back cannot be allowed to fail: the launcher
// would go on working inside a sandbox's network.
class Visit {
 public:
  static Result<Visit> to_new() {
    TRY(auto home, sys::open_at(AT_FDCWD, "/proc/self/ns/net", O_RDONLY));
    if (::unshare(CLONE_NEWNET) != 0) return Error::from_errno("unshare network", errno);
    return Visit(std::move(home));
  }
  static Result<Visit> to(const Fd& there) {
    TRY(auto home, sys::open_at(AT_FDCWD, "/proc/self/ns/net", O_RDONLY));
    if (::setns(there.get(), CLONE_NEWNET) != 0) return Error::from_errno("enter network", errno);
    return Visit(std::move(home));
  }
  Visit(Visit&&) noexcept = default;
  Visit& operator=(Visit&&) = delete;
  ~Visit() {
    if (home_ && ::setns(home_.get(), CLONE_NEWNET) != 0) std::abort();
  }

 private:
  explicit Visit(Fd home) : home_(std::move(home)) {}
  Fd home_;
};

Result<> bring_up_loopback() {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return Error::from_errno("socket", errno);
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return Error::from_errno("bring lo up", errno);
  return Ok{};
}

Result<> map_ids(pid_t first, const std::string& uids, const std::string& gids) {
  CHECK_OK(sys::write_at(AT_FDCWD, cat("/proc/", first, "/uid_map").c_str(), uids));
  return sys::write_at(AT_FDCWD, cat("/proc/", first, "/gid_map").c_str(), gids);
}

// The first process of a new user namespace: it forbids further ones beneath it and ends. It runs on the launcher's memory and
// descriptors while the launcher waits, so nothing is copied however many sandboxes those belong to.
int forbid_nesting(void* proc) {
  auto limited = sys::write_at(*static_cast<int*>(proc), "sys/user/max_user_namespaces", "0");
  return limited ? 0 : limited.error().sys();
}

// Reaps the first process on every way out: its namespace can be reached through it until then, although it has ended.
struct Ended {
  pid_t pid = 0;
  ~Ended() {
    while (pid > 0 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
};

Result<Fd> make_mapped_namespace(int proc, const std::string& uids, const std::string& gids) {
  alignas(16) char stack[16 * 1024];
  Ended first{::clone(forbid_nesting, stack + sizeof stack, CLONE_NEWUSER | CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &proc)};
  if (first.pid < 0) return Error::from_errno("clone user namespace", errno);
  siginfo_t how{};
  if (::waitid(P_PID, static_cast<id_t>(first.pid), &how, WEXITED | WNOWAIT) != 0)
    return Error::from_errno("wait for user namespace", errno);
  if (how.si_code != CLD_EXITED) return Error(Errc::internal, "the first process of a user namespace was killed");
  if (how.si_status != 0) return Error::from_errno("forbid nested user namespaces", how.si_status);
  CHECK_OK(map_ids(first.pid, uids, gids));
  return sys::open_at(AT_FDCWD, cat("/proc/", first.pid, "/ns/user").c_str(), O_RDONLY);
}

}  // namespace

Result<int> Switches::proc() {
  if (view_ && ++uses_ <= kUses) return view_.get();
  Fd fs(sys::raw::fsopen("proc"));
  Fd view(fs && sys::raw::fsconfig_create(fs.get()) == 0
              ? sys::raw::fsmount(fs.get(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
              : -1);
  if (!view) return Error::from_errno("view of the kernel's switches", errno);
  view_ = std::move(view);
  uses_ = 1;
  return view_.get();
}

Result<Fd> make_user_namespace(Switches& switches, std::uint32_t first_id) {
  std::string map = cat("0 ", first_id, " ", kIdsPerRange, "\n");
  TRY(int proc, switches.proc());
  return make_mapped_namespace(proc, map, map);
}

Result<Fd> make_volume_namespace(Switches& switches, std::uint32_t uid, std::uint32_t gid, std::uint32_t outside) {
  TRY(int proc, switches.proc());
  return make_mapped_namespace(proc, cat(uid, " ", outside, " 1\n"), cat(gid, " ", outside, " 1\n"));
}

Result<Network> make_network_namespace(Switches& switches) {
  TRY(int proc, switches.proc());
  TRY(auto visit, Visit::to_new());
  CHECK_OK(bring_up_loopback());
  CHECK_OK(sys::write_at(proc, "sys/net/ipv4/ip_unprivileged_port_start", "0"));
  Network network;
  TRY(network.ns, sys::open_at(AT_FDCWD, "/proc/self/ns/net", O_RDONLY));
  TRY(network.devices, sys::open_at(AT_FDCWD, "/proc/self/net/dev", O_RDONLY));
  TRY(network.sockets, sys::open_at(AT_FDCWD, "/proc/self/net/sockstat", O_RDONLY));
  TRY(network.fresh, sys::reread(network.devices.get()));
  return network;
}

bool is_untouched(const Network& network) {
  auto devices = sys::reread(network.devices.get());
  auto sockets = sys::reread(network.sockets.get());
  return devices && sockets && *devices == network.fresh && sockets->starts_with("sockets: used 0\n");
}

Result<Fd> socket_in_network_of(std::int32_t pid) {
  TRY(auto there, sys::open_at(AT_FDCWD, cat("/proc/", pid, "/ns/net").c_str(), O_RDONLY));
  TRY(auto visit, Visit::to(there));
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::from_errno("socket", errno);
  return socket;
}

}  // namespace osb::launch
