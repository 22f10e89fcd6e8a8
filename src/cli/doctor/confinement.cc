#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/fd.h"
#include "base/text.h"
#include "cli/doctor/probes.h"
#include "sys/raw.h"

namespace osb::cli {
namespace {

constexpr const char* kPart = "Confinement";

// A real filter that refuses uname with EPERM; the probe passes only when the refusal is felt.
int try_filter() {
  sock_filter code[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_uname},
                        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
                        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return errno;
  utsname host{};
  return ::uname(&host) == -1 && errno == EPERM ? 0 : ENOSYS;
}

Finding seccomp() {
  int failed = errno_in_child(try_filter);
  if (failed != 0)
    return {kPart,
            "seccomp filter",
            Verdict::missing,
            true,
            cat("filters cannot be installed: ", std::strerror(failed)),
            "use a kernel with CONFIG_SECCOMP_FILTER"};
  auto actions = cat(" ", first_line("/proc/sys/kernel/seccomp/actions_avail"), " ");
  if (!actions.contains(" kill_process "))
    return {kPart,
            "seccomp filter",
            Verdict::missing,
            true,
            "the kernel cannot kill a whole process for a forbidden call",
            "upgrade to Linux 4.14 or later"};
  return {kPart, "seccomp filter", Verdict::ok, true, "only listed system calls pass; the worst of the others kill", {}};
}

Finding landlock() {
  int abi = sys::raw::landlock_abi();
  if (abi < 1)
    return {kPart,
            "Landlock",
            Verdict::missing,
            true,
            "the second wall around files is not there",
            "boot with lsm=landlock,... (Linux 5.13 or later)"};
  if (abi < 6)
    return {kPart,
            "Landlock",
            Verdict::weak,
            false,
            cat("ABI ", abi, ": files yes, signals and abstract sockets not yet"),
            "upgrade to Linux 6.12 or later"};
  return {kPart, "Landlock", Verdict::ok, true, cat("ABI ", abi, ": a second wall around files, signals and sockets"), {}};
}

Finding sealed_program() {
  auto setting = first_line("/proc/sys/vm/memfd_noexec");
  Fd memory(::memfd_create("opensandbox-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  bool sealable = memory && ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) == 0;
  if (sealable && (setting.empty() || setting == "0"))
    return {kPart, "sealed memory", Verdict::ok, true, "what runs inside starts from a copy nobody can change", {}};
  return {kPart, "sealed memory", Verdict::missing, true, "programs cannot be started from sealed memory", "sysctl -w vm.memfd_noexec=0"};
}

Finding core_files() {
  auto pattern = first_line("/proc/sys/kernel/core_pattern");
  if (!pattern.starts_with('|')) return {kPart, "core files", Verdict::ok, false, "a crash inside writes nothing outside", {}};
  return {kPart,
          "core files",
          Verdict::ok,
          false,
          "core_pattern pipes into a program of the host; sandboxes are kept away from it (RLIMIT_CORE=1)",
          {}};
}

Finding io_uring() {
  auto setting = first_line("/proc/sys/kernel/io_uring_disabled");
  if (setting == "2") return {kPart, "io_uring", Verdict::ok, false, "off for the whole host", {}};
  return {kPart,
          "io_uring",
          Verdict::weak,
          false,
          "refused inside by the filter; also turning it off on the host takes one large surface away",
          "sysctl -w kernel.io_uring_disabled=2"};
}

Finding bpf() {
  auto setting = first_line("/proc/sys/kernel/unprivileged_bpf_disabled");
  if (setting == "1" || setting == "2") return {kPart, "bpf", Verdict::ok, false, "not for ordinary users", {}};
  return {kPart,
          "bpf",
          Verdict::weak,
          false,
          "refused inside by the filter; ordinary users of the host may load programs",
          "sysctl -w kernel.unprivileged_bpf_disabled=1"};
}

}  // namespace

std::vector<Finding> probe_confinement() { return {seccomp(), landlock(), sealed_program(), core_files(), io_uring(), bpf()}; }

}  // namespace osb::cli
