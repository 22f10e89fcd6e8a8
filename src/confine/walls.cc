#include "confine/walls.h"

#include <fcntl.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "enter/enter.h"
#include "sys/raw.h"

namespace osb::confine {
namespace {

constexpr int kProgramFd = enter::kOomCounterFd + 1;  // where arrange_descriptors() puts `started`
// Engines reserve addresses they never fill (V8, the JVM, WebAssembly guards); what they fill is counted as data.
constexpr rlim_t kReservedAddresses = 16ull << 30;
constexpr int kNiceness = 5;

bool write_file(const char* path, const char* text) {
  int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  auto size = std::strlen(text);
  bool written = ::write(fd, text, size) == static_cast<ssize_t>(size);
  int error = errno;
  ::close(fd);
  errno = error;
  return written;
}

bool limit(__rlimit_resource resource, rlim_t most) {
  rlimit present{};
  if (::getrlimit(resource, &present) != 0) return false;
  rlim_t value = present.rlim_max < most ? present.rlim_max : most;
  rlimit wanted{value, value};
  return ::setrlimit(resource, &wanted) == 0;
}

void usual_signals() {
  for (int number = 1; number < 32; ++number)
    if (number != SIGKILL && number != SIGSTOP) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

// Set after the user namespace came into being, which clears it. A keeper that died before is noticed by await_ids().
bool Walls::follow_keeper() {
  usual_signals();
  return ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::setsid() >= 0;
}

bool Walls::await_ids() {
  char byte = 0;
  if (::read(plan_.go, &byte, 1) != 1) return errno = EPIPE, false;
  // No further user namespace inside: the filter refuses them, and so does this count.
  if (!write_file("/proc/sys/user/max_user_namespaces", "0")) return false;
  // When the host runs out of memory a sandbox goes before anything of its user's. Read-only /proc keeps it so.
  return write_file("/proc/self/oom_score_adj", "800");
}

bool Walls::raise_loopback() {
  int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP;
  bool up = ::ioctl(socket, SIOCSIFFLAGS, &request) == 0;
  int error = errno;
  ::close(socket);
  errno = error;
  return up && write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
}

// There is no group: memory is bounded for each process, the number of processes for the sandbox (the kernel counts them by user
// and user namespace). Processor time is not bounded; everybody else goes first.
bool Walls::set_rlimits() {
  const Limits& limits = plan_.base.limits;
  return limit(RLIMIT_DATA, limits.memory_bytes) && limit(RLIMIT_AS, limits.memory_bytes + kReservedAddresses) &&
         limit(RLIMIT_NPROC, limits.pids) && ::setpriority(PRIO_PROCESS, 0, kNiceness) == 0;
}

// None for execd either: it is the same user as its programs and needs no right over them.
bool Walls::drop_all_capabilities() {
  for (int capability = 0; capability <= plan_.base.host.last_capability; ++capability)
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return false;
  constexpr unsigned long kBits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
                                  SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  if (::prctl(PR_SET_SECUREBITS, kBits, 0, 0, 0) != 0) return false;
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return false;
  return sys::raw::drop_capabilities() == 0;
}

bool Walls::keep_program_ours() { return ::fcntl(kProgramFd, F_SETFD, FD_CLOEXEC) == 0; }

bool Walls::become_execd() {
  char name[] = "opensandbox-execd";
  char mode[] = "--native";
  char* argv[] = {name, mode, nullptr};
  char* envp[] = {nullptr};
  sys::raw::execute(kProgramFd, argv, envp);
  return false;
}

}  // namespace osb::confine
