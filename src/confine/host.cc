#include "confine/host.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/text.h"
#include "launch/host_view.h"
#include "launch/sealed_program.h"
#include "launch/shape.h"
#include "sys/kernel_file.h"
#include "sys/pipe.h"
#include "sys/raw.h"

namespace osb::confine {
namespace {

constexpr std::string_view kAllowNamespaces =
    "allow them as root with one of: sysctl -w user.max_user_namespaces=15000; sysctl -w kernel.unprivileged_userns_clone=1 (Debian); "
    "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu 24.04 and later)";

// What the namespaces must allow beyond being made: some hosts give them without any right inside.
bool try_a_mount(int go) {
  char byte = 0;
  if (::read(go, &byte, 1) != 1) return errno = EPIPE, false;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return ::mount("probe", "/usr", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") == 0;
}

bool try_proc() { return ::mount("probe", "/usr", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0; }
constexpr int kProcRefused = 200;  // as an exit status: no errno is that large

}  // namespace

int divide(int& pidfd) {
  clone_args args{};
  args.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP | CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  return sys::raw::clone3(args);
}

Result<> map_own_ids(std::int32_t pid) {
  auto write = [&](const char* file, const std::string& text) {
    return sys::write_at(AT_FDCWD, cat("/proc/", pid, "/", file).c_str(), text);
  };
  CHECK_OK(write("setgroups", "deny"));  // the kernel's price for mapping a group without a privilege
  CHECK_OK(write("uid_map", cat(kInnerId, " ", ::geteuid(), " 1\n")));
  return write("gid_map", cat(kInnerId, " ", ::getegid(), " 1\n"));
}

// Root's processes would be root's to the kernel: it does not limit their number, and every file of the host is theirs.
Result<> check_user() {
  if (::geteuid() != 0) return Ok{};
  return Error(Errc::permission_denied, "the process runtime is for ordinary users and does not run as root")
      .with_hint("run this as another user, or use the runtime native, which isolates better");
}

Result<> check_namespaces() {
  TRY(auto go, sys::make_pipe());
  auto refused = [](const char* what, int sys) {
    return Error(Errc::unavailable, cat(what, ": ", std::strerror(sys)), sys).with_hint(kAllowNamespaces);
  };
  int pidfd = -1;
  int child = divide(pidfd);
  if (child < 0) return refused("this kernel lets no ordinary user make user namespaces", errno);
  if (child == 0) {
    go.write.reset();
    if (!try_a_mount(go.read.get())) ::_exit(errno);
    ::_exit(try_proc() ? 0 : kProcRefused);
  }
  Fd process(pidfd);
  auto mapped = map_own_ids(child);
  bool told = mapped && ::write(go.write.get(), "g", 1) == 1;
  go.write.reset();
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(process.get()), &info, WEXITED) != 0 && errno == EINTR) {
  }
  if (!mapped) return refused("a user namespace cannot be given its user", mapped.error().sys());
  if (!told || info.si_code != CLD_EXITED) return Error(Errc::internal, "the process that tries namespaces out died");
  if (info.si_status == kProcRefused)
    return Error(Errc::unavailable, "no sandbox can have a /proc of its own: this host's is partly covered, as in a container", EPERM)
        .with_hint("run outside of the container, or start it with its /proc uncovered (docker: --security-opt systempaths=unconfined)");
  if (info.si_status != 0) return refused("user namespaces of ordinary users have no rights on this host", info.si_status);
  return Ok{};
}

Result<Host> Host::prepare(const HostOptions& options) {
  CHECK_OK(check_user());
  Host host;
  host.options_ = options;
  host.facts_.landlock_abi = sys::raw::landlock_abi();
  if (host.facts_.landlock_abi < 1)
    return Error(Errc::unavailable, "this kernel has no Landlock").with_hint("boot with lsm=landlock,... (Linux 5.13 or later)");
  CHECK_OK(check_namespaces());
  TRY(auto last, sys::read_file("/proc/sys/kernel/cap_last_cap", 64));
  host.facts_.last_capability = parse_int<int>(split(last, '\n')[0]).value_or(40);
  TRY(host.dev_null_, sys::open_at(AT_FDCWD, "/dev/null", O_RDWR));
  host.facts_.dev_null = host.dev_null_.get();
  host.facts_.proc_masks = launch::existing_in_proc(launch::masked_proc_files());
  host.facts_.proc_dir_masks = launch::existing_in_proc(launch::masked_proc_dirs());
  host.facts_.directories = launch::host_directories();
  host.facts_.work_dir = options.run_dir + "/work";
  CHECK_OK(sys::make_dirs(host.facts_.work_dir, 0700));
  for (auto profile : {SyscallProfile::minimal, SyscallProfile::standard, SyscallProfile::permissive}) {
    TRY(auto filter, launch::compile_filter(profile));
    host.filters_.push_back(std::move(filter));
  }
  TRY(host.execd_, launch::seal_program(options.execd));
  CHECK_OK(host.open_workspace());
  return host;
}

Result<> Host::open_workspace() {
  if (options_.workspace.empty()) return Ok{};
  auto opened = sys::open_at(AT_FDCWD, options_.workspace.c_str(), O_PATH | O_DIRECTORY);
  if (!opened) return std::move(opened).error().in(cat("workspace ", options_.workspace));
  workspace_ = *std::move(opened);
  return Ok{};
}

std::vector<sock_filter> Host::filter(SyscallProfile profile) const {
  auto program = filters_[static_cast<std::size_t>(profile)].program();
  return {program.filter, program.filter + program.len};
}

}  // namespace osb::confine
