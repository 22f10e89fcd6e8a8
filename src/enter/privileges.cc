#include "enter/privileges.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "sys/raw.h"

namespace osb::enter {
namespace {

namespace raw = sys::raw;

constexpr int kStartedFd = kOomCounterFd + 1;

constexpr std::uint64_t bit(int capability) { return 1ull << capability; }

// What execd needs to serve as init and agent, all of it only inside the sandbox's user namespace.
constexpr std::uint64_t kAgentCapabilities =
    bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_FOWNER) | bit(CAP_KILL) | bit(CAP_SETGID) | bit(CAP_SETUID);
// What root mode adds, so that its payload can keep the eight it is promised.
constexpr std::uint64_t kRootModeExtra = bit(CAP_FSETID) | bit(CAP_NET_BIND_SERVICE);

constexpr std::uint64_t kOfFiles = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
                                   raw::kLandlockTruncate | raw::kLandlockIoctlDev;

bool allow(int ruleset, const char* path, std::uint64_t rights) {
  int fd = ::open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat info{};
  if (::fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode)) rights &= kOfFiles;  // a rule for a file may not speak of directories
  bool added = raw::landlock_allow_beneath(ruleset, fd, rights) == 0;
  int error = errno;
  ::close(fd);
  errno = error;
  return added;
}

bool limit(int resource, rlim_t soft, rlim_t hard) {
  rlimit value{soft, hard};
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &value) == 0) return true;
  // A host that already gives us less than the policy's hard limit gives the sandbox that.
  rlimit present{};
  if (errno != EPERM || ::getrlimit(static_cast<__rlimit_resource>(resource), &present) != 0) return false;
  value.rlim_max = present.rlim_max < hard ? present.rlim_max : hard;
  value.rlim_cur = soft < value.rlim_max ? soft : value.rlim_max;
  return ::setrlimit(static_cast<__rlimit_resource>(resource), &value) == 0;
}

}  // namespace

bool Privileges::join_cgroups() {
  for (int tasks : plan_.cgroup_tasks)
    if (::write(tasks, "0", 1) != 1) return false;
  return true;
}

bool Privileges::leave_cgroup_view() { return ::unshare(CLONE_NEWCGROUP) == 0; }

bool Privileges::join_network() { return ::setns(plan_.network_namespace, CLONE_NEWNET) == 0; }

bool Privileges::set_hostname() { return ::sethostname(plan_.hostname.data(), plan_.hostname.size()) == 0 && ::setdomainname("", 0) == 0; }

bool Privileges::new_keyring() {
  if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) >= 0) return true;
  return errno == ENOSYS;  // a kernel without keyrings has none to share
}

// The lower bound comes when descriptors are in their places.
constexpr rlim_t kUsualFiles = 1024, kMostFiles = 16384;

bool Privileges::set_rlimits() {
  constexpr rlim_t kMiB = 1 << 20;
  // CORE is 1, not 0: a piped core_pattern handler runs on the host for 0 as well, and is skipped for 1.
  return limit(RLIMIT_CORE, 1, 1) && limit(RLIMIT_NOFILE, kMostFiles, kMostFiles) &&
         limit(RLIMIT_FSIZE, plan_.limits.disk_bytes, plan_.limits.disk_bytes) && limit(RLIMIT_MEMLOCK, 8 * kMiB, 8 * kMiB) &&
         limit(RLIMIT_MSGQUEUE, 800 * 1024, 800 * 1024) && limit(RLIMIT_SIGPENDING, 4096, 4096) && limit(RLIMIT_RTPRIO, 0, 0) &&
         limit(RLIMIT_NICE, 0, 0) && limit(RLIMIT_RTTIME, 0, 0) && limit(RLIMIT_STACK, 8 * kMiB, 64 * kMiB) &&
         limit(RLIMIT_LOCKS, 1024, 1024);
}

bool Privileges::make_landlock_rules(std::span<const int> writable_places) {
  int abi = plan_.host.landlock_abi;
  raw::LandlockRuleset ruleset;
  ruleset.handled_fs = raw::landlock_fs_rights(abi);
  ruleset.scoped = raw::landlock_scopes(abi);
  landlock_ = raw::landlock_create_ruleset(ruleset, abi);
  if (landlock_ < 0) return false;
  constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
  std::uint64_t devices = (kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | raw::kLandlockTruncate | raw::kLandlockIoctlDev) & ruleset.handled_fs;
  if (plan_.policy.root == RootMode::writable) return allow(landlock_, "/", ruleset.handled_fs);
  if (!allow(landlock_, "/", kRead) || !allow(landlock_, "/dev", devices)) return false;
  if (writable_places.empty())
    for (const char* path : {"/workspace", "/home/user", "/tmp", "/var/tmp", "/run", "/dev/shm", "/dev/mqueue"})
      if (!allow(landlock_, path, ruleset.handled_fs)) return false;
  for (int place : writable_places)
    if (raw::landlock_allow_beneath(landlock_, place, ruleset.handled_fs) != 0) return false;
  for (const auto& volume : plan_.volumes)
    if (!volume.read_only && !allow(landlock_, volume.mount_path.c_str(), ruleset.handled_fs)) return false;
  return true;
}

// The raw calls act on this thread, which is the only one.
bool Privileges::become_agent() {
  if (::setns(plan_.user_namespace, CLONE_NEWUSER) != 0) return false;
  return ::syscall(SYS_setgroups, 0, nullptr) == 0 && ::syscall(SYS_setresgid, kAgentId, kAgentId, kAgentId) == 0 &&
         ::syscall(SYS_setresuid, kAgentId, kAgentId, kAgentId) == 0;
}

bool Privileges::drop_capabilities() {
  bool root_mode = plan_.policy.user == UserMode::root;
  std::uint64_t keep = kAgentCapabilities | (root_mode ? kRootModeExtra : 0);
  // Programs inherit the bounding set, so none of them can regain what execd holds; in root mode these are just the eight that are
  // promised.
  std::uint64_t regained = root_mode ? keep : 0;
  for (int capability = 0; capability <= plan_.host.last_capability; ++capability)
    if (!(regained & bit(capability)) && ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return false;
  unsigned long bits = SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED | SECBIT_KEEP_CAPS_LOCKED;
  if (!root_mode) bits |= SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED;
  if (::prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) != 0) return false;
  // Last: what all of the above takes, CAP_SETPCAP, goes with the rest.
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  for (int half = 0; half < 2; ++half) {
    auto word = static_cast<std::uint32_t>(keep >> (32 * half));
    data[half] = {word, word, 0};
  }
  return ::syscall(SYS_capset, &header, data) == 0;
}

bool Privileges::enter_landlock() { return raw::landlock_restrict_self(landlock_) == 0; }

bool Privileges::arrange_descriptors() {
  // Numbers first move out of the way, so that no dup2 overwrites a descriptor that is still needed.
  constexpr int kHigh = 200;
  auto high = [](int fd) { return ::fcntl(fd, F_DUPFD_CLOEXEC, kHigh); };
  int null = high(plan_.host.dev_null);
  int listener = high(plan_.listener);
  int setup = high(plan_.setup);
  int report = high(plan_.report);
  int oom = high(plan_.oom_counter);
  int started = plan_.started < 0 ? null : high(plan_.started);
  if (null < 0 || listener < 0 || setup < 0 || report < 0 || oom < 0 || started < 0) return false;
  bool placed = ::dup2(null, 0) == 0 && ::dup2(null, 1) == 1 && ::dup2(null, 2) == 2 && ::dup2(listener, kListenerFd) == kListenerFd &&
                ::dup2(setup, kSetupFd) == kSetupFd && ::dup2(report, kReportFd) == kReportFd &&
                ::dup2(oom, kOomCounterFd) == kOomCounterFd && ::dup2(started, kStartedFd) == kStartedFd;
  return placed && raw::close_range(kStartedFd + 1, ~0u, 0) == 0 && limit(RLIMIT_NOFILE, kUsualFiles, kMostFiles);
}

bool Privileges::load_seccomp() {
  sock_fprog program{static_cast<unsigned short>(plan_.filter.size()), const_cast<sock_filter*>(plan_.filter.data())};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

// Whoever holds the other end learns that this process is a sandbox from now on.
bool Privileges::tell_started() { return ::close(kStartedFd) == 0; }

}  // namespace osb::enter
