// Kernel calls that glibc 2.36 does not wrap, one thin inline each: returns the kernel's value, or -1 with errno.
// Safe between clone and exec: no heap, no locks.
#pragma once
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000
#endif

namespace osb::sys::raw {

inline int clone3(clone_args& args) { return static_cast<int>(::syscall(SYS_clone3, &args, sizeof args)); }
inline int pidfd_open(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0u)); }
inline int pidfd_send_signal(int pidfd, int signal) {
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0u));
}

// Reaps the process, with what it and the children it waited for have used.
inline int wait_pidfd(int pidfd, siginfo_t& info, rusage& used) {
  return static_cast<int>(::syscall(SYS_waitid, P_PIDFD, pidfd, &info, WEXITED, &used));
}

// execveat(2) of the program behind a descriptor; returns only when it failed.
inline int execute(int program, char* const* argv, char* const* envp) {
  return static_cast<int>(::syscall(SYS_execveat, program, "", argv, envp, AT_EMPTY_PATH));
}

inline int openat2(int dir, const char* path, std::uint64_t flags, std::uint64_t resolve, std::uint64_t mode = 0) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.mode = mode;
  how.resolve = resolve;
  return static_cast<int>(::syscall(SYS_openat2, dir, path, &how, sizeof how));
}

// ---- the mount API of Linux 5.2 and later; every mount has a descriptor before it has a place ----

inline int fsopen(const char* type) { return static_cast<int>(::syscall(SYS_fsopen, type, FSOPEN_CLOEXEC)); }
inline int fsconfig_string(int fs, const char* key, const char* value) {
  return static_cast<int>(::syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, value, 0));
}
inline int fsconfig_flag(int fs, const char* key) {
  return static_cast<int>(::syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, key, nullptr, 0));
}
inline int fsconfig_descriptor(int fs, const char* key, int descriptor) {
  return static_cast<int>(::syscall(SYS_fsconfig, fs, FSCONFIG_SET_FD, key, nullptr, descriptor));
}
inline int fsconfig_create(int fs) { return static_cast<int>(::syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0)); }
inline int fsmount(int fs, unsigned attributes) { return static_cast<int>(::syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attributes)); }
inline int open_tree_clone(int dir, const char* path) {
  return static_cast<int>(::syscall(SYS_open_tree, dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (*path == 0 ? AT_EMPTY_PATH : 0)));
}
// With everything mounted below it; the only way for a user who may not uncover what lies under the host's mounts.
inline int open_whole_tree_clone(int dir, const char* path) {
  unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | (*path == 0 ? AT_EMPTY_PATH : 0);
  return static_cast<int>(::syscall(SYS_open_tree, dir, path, flags));
}
inline int move_mount(int mount, int to_dir, const char* to_path) {
  unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (*to_path == 0 ? MOVE_MOUNT_T_EMPTY_PATH : 0);
  return static_cast<int>(::syscall(SYS_move_mount, mount, "", to_dir, to_path, flags));
}
inline int pivot_root(const char* new_root, const char* put_old) { return static_cast<int>(::syscall(SYS_pivot_root, new_root, put_old)); }
inline int mount_setattr(int mount, std::uint64_t set, int userns = -1, std::uint64_t propagation = 0) {
  mount_attr attr{};
  attr.attr_set = set;
  attr.propagation = propagation;
  if (set & MOUNT_ATTR_IDMAP) attr.userns_fd = static_cast<std::uint64_t>(userns);
  return static_cast<int>(::syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH, &attr, sizeof attr));
}
inline int mount_setattr_whole(int mount, std::uint64_t set) {
  mount_attr attr{};
  attr.attr_set = set;
  return static_cast<int>(::syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr));
}

// ---- capabilities ----

inline int drop_capabilities() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  return static_cast<int>(::syscall(SYS_capset, &head, none));
}

// ---- Landlock; the numbers are the kernel's, ours because the build host's headers may be older than the running kernel ----

inline constexpr std::uint64_t kLandlockFsAbi1 = (1ull << 13) - 1;
inline constexpr std::uint64_t kLandlockRefer = 1ull << 13;                               // ABI 2, Linux 5.19
inline constexpr std::uint64_t kLandlockTruncate = 1ull << 14;                            // ABI 3, Linux 6.2
inline constexpr std::uint64_t kLandlockBindTcp = 1, kLandlockConnectTcp = 2;             // ABI 4, Linux 6.7
inline constexpr std::uint64_t kLandlockIoctlDev = 1ull << 15;                            // ABI 5, Linux 6.10
inline constexpr std::uint64_t kLandlockScopeAbstractUnix = 1, kLandlockScopeSignal = 2;  // ABI 6, Linux 6.12

// Every right that a kernel of this ABI can withhold.
constexpr std::uint64_t landlock_fs_rights(int abi) {
  return kLandlockFsAbi1 | (abi >= 2 ? kLandlockRefer : 0) | (abi >= 3 ? kLandlockTruncate : 0) | (abi >= 5 ? kLandlockIoctlDev : 0);
}
constexpr std::uint64_t landlock_net_rights(int abi) { return abi >= 4 ? kLandlockBindTcp | kLandlockConnectTcp : 0; }
constexpr std::uint64_t landlock_scopes(int abi) { return abi >= 6 ? kLandlockScopeAbstractUnix | kLandlockScopeSignal : 0; }

struct LandlockRuleset {  // as of ABI 7
  std::uint64_t handled_fs = 0;
  std::uint64_t handled_net = 0;
  std::uint64_t scoped = 0;
};
inline int landlock_abi() { return static_cast<int>(::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION)); }
// Older kernels refuse a struct longer than theirs unless the tail is zero; the size says how much is meant.
inline int landlock_create_ruleset(const LandlockRuleset& ruleset, int abi) {
  std::size_t size = abi >= 6 ? sizeof ruleset : abi >= 4 ? offsetof(LandlockRuleset, scoped) : offsetof(LandlockRuleset, handled_net);
  return static_cast<int>(::syscall(SYS_landlock_create_ruleset, &ruleset, size, 0));
}
inline int landlock_allow_beneath(int ruleset, int path_fd, std::uint64_t rights) {
  landlock_path_beneath_attr attr{};
  attr.allowed_access = rights;
  attr.parent_fd = path_fd;
  return static_cast<int>(::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0));
}
inline int landlock_restrict_self(int ruleset) { return static_cast<int>(::syscall(SYS_landlock_restrict_self, ruleset, 0)); }

inline int close_range(unsigned first, unsigned last, unsigned flags) {
  return static_cast<int>(::syscall(SYS_close_range, first, last, flags));
}

}  // namespace osb::sys::raw
