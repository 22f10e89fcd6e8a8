#include "launch/namespaces.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
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

Result<> map_ids(pid_t holder, const std::string& uids, const std::string& gids) {
  CHECK_OK(sys::write_at(AT_FDCWD, cat("/proc/", holder, "/uid_map").c_str(), uids));
  return sys::write_at(AT_FDCWD, cat("/proc/", holder, "/gid_map").c_str(), gids);
}

// Runs in the new user namespace: waits for the maps, forbids nested user namespaces, says how it went. It has copies of
// all of the launcher's descriptors, the lock among them, so it must not outlive a launcher that is killed: without the
// launcher's end of the socket the second read ends.
[[noreturn]] void hold_namespace(int launcher_end, int socket) {
  ::close(launcher_end);
  char byte = 0;
  if (::read(socket, &byte, 1) != 1) ::_exit(1);
  auto limited = sys::write_at(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0");
  int error = limited ? 0 : limited.error().sys();
  [[maybe_unused]] auto sent = ::write(socket, &error, sizeof error);
  [[maybe_unused]] auto ended = ::read(socket, &byte, 1);
  ::_exit(0);
}

// Kills and reaps the helper process on every way out.
struct Holder {
  pid_t pid = 0;
  ~Holder() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
};

Result<Fd> make_mapped_namespace(const std::string& uids, const std::string& gids) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return Error::from_errno("socketpair", errno);
  Fd ours(sockets[0]);
  Fd theirs(sockets[1]);
  clone_args args{};
  args.flags = CLONE_NEWUSER;
  args.exit_signal = SIGCHLD;
  Holder holder{sys::raw::clone3(args)};
  if (holder.pid == 0) hold_namespace(ours.get(), theirs.get());
  if (holder.pid < 0) return Error::from_errno("clone user namespace", errno);
  theirs.reset();  // a dead holder then reads as end of file instead of silence
  CHECK_OK(map_ids(holder.pid, uids, gids));
  int error = 0;
  if (::write(ours.get(), "g", 1) != 1) return Error::from_errno("start namespace holder", errno);
  if (::read(ours.get(), &error, sizeof error) != sizeof error) return Error(Errc::internal, "user namespace holder died");
  if (error != 0) return Error::from_errno("forbid nested user namespaces", error);
  return sys::open_at(AT_FDCWD, cat("/proc/", holder.pid, "/ns/user").c_str(), O_RDONLY);
}

}  // namespace

Result<Fd> make_user_namespace(std::uint32_t first_id) {
  std::string map = cat("0 ", first_id, " ", kIdsPerRange, "\n");
  return make_mapped_namespace(map, map);
}

Result<Fd> make_volume_namespace(std::uint32_t uid, std::uint32_t gid, std::uint32_t outside) {
  return make_mapped_namespace(cat(uid, " ", outside, " 1\n"), cat(gid, " ", outside, " 1\n"));
}

Result<Network> make_network_namespace() {
  TRY(auto visit, Visit::to_new());
  CHECK_OK(bring_up_loopback());
  CHECK_OK(sys::write_at(AT_FDCWD, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"));
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
