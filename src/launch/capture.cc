#include "launch/capture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/text.h"
#include "sys/pipe.h"
#include "sys/raw.h"

namespace osb::launch {
namespace {

namespace raw = sys::raw;

constexpr int kOpenDir = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// From here on "/" is what the launcher saw when it made the sandbox, with the sandbox's own mounts in it. Everything happens
// in a copy of the namespace: the sandbox keeps its root.
Result<> enter_beneath(int sandbox) {
  Fd self(raw::pidfd_open(::getpid()));
  if (!self) return Error::from_errno("pidfd", errno);
  if (::setns(sandbox, CLONE_NEWNS) != 0) return Error::from_errno("join the sandbox's mounts", errno);
  if (::unshare(CLONE_NEWNS) != 0) return Error::from_errno("copy the sandbox's mounts", errno);
  if (::umount2("/", MNT_DETACH) != 0) return Error::from_errno("take the root off", errno);
  // Joining the own namespace moves "/" to what is on top now.
  if (::setns(self.get(), CLONE_NEWNS) != 0) return Error::from_errno("go below the root", errno);
  return Ok{};
}

Result<Fd> open_mount(const std::string& work_dir, const char* name) {
  std::string path = cat(work_dir, "/", name);
  Fd dir(::open(path.c_str(), kOpenDir));
  struct stat above{}, here{};
  if (!dir || ::stat(work_dir.c_str(), &above) != 0 || ::fstat(dir.get(), &here) != 0) return Error::from_errno(cat("open ", name), errno);
  if (above.st_dev == here.st_dev) return Error(Errc::internal, cat(name, " of the sandbox is not mounted"), ENODEV);
  return dir;
}

// A store in memory has the temporary places inside.
Result<Fd> open_scratch(const std::string& work_dir, int store) {
  auto apart = open_mount(work_dir, "scratch");
  if (apart || apart.error().sys() != ENODEV || ::faccessat(store, "tmp", F_OK, 0) != 0) return apart;
  Fd inside(::openat(store, ".", kOpenDir));
  return inside ? Result<Fd>(std::move(inside)) : Error::from_errno("open store", errno);
}

Result<> add_place(TreeCopy& copy, int from, const std::string& name, const std::string& path) {
  Fd dir(::openat(from, name.c_str(), kOpenDir));
  if (!dir && errno == ENOENT) return Ok{};  // a root that is read-only has no upper directory
  if (!dir) return Error::from_errno(cat("open ", name), errno);
  if (auto added = copy.add(dir.get(), path); !added) return std::move(added).error().in(cat("/", path));
  return Ok{};
}

Result<> remove_names(int links) {
  Fd own(::openat(links, ".", kOpenDir));
  DIR* stream = own ? ::fdopendir(own.release()) : nullptr;
  if (stream == nullptr) return Error::from_errno("list links", errno);
  while (const auto* item = ::readdir(stream))
    if (item->d_name[0] != '.') ::unlinkat(links, item->d_name, 0);
  ::closedir(stream);
  return Ok{};
}

Result<> copy_all(const CaptureJob& job, CaptureReport& report) {
  CHECK_OK(enter_beneath(job.sandbox));
  TRY(auto store, open_mount(job.work_dir, "store"));
  TRY(auto scratch, open_scratch(job.work_dir, store.get()));
  if (::mkdirat(job.into, "layer", 0755) != 0 || ::mkdirat(job.into, "links", 0700) != 0) return Error::from_errno("make layer", errno);
  Fd layer(::openat(job.into, "layer", kOpenDir));
  Fd links(::openat(job.into, "links", kOpenDir));
  if (!layer || !links || ::fchmod(layer.get(), 0755) != 0) return Error::from_errno("open layer", errno);
  TreeCopy copy(job.limits, job.first_id, layer.get(), links.get());
  CHECK_OK(add_place(copy, store.get(), "upper", ""));
  for (std::size_t i = 0; i < job.host_directories.size(); ++i)
    CHECK_OK(add_place(copy, store.get(), cat("upper-h", i), job.host_directories[i]));
  CHECK_OK(add_place(copy, store.get(), "workspace", "workspace"));
  CHECK_OK(add_place(copy, store.get(), "home", "home/user"));
  CHECK_OK(add_place(copy, scratch.get(), "tmp", "tmp"));
  CHECK_OK(add_place(copy, scratch.get(), "var-tmp", "var/tmp"));
  CHECK_OK(remove_names(links.get()));
  if (::unlinkat(job.into, "links", AT_REMOVEDIR) != 0) return Error::from_errno("remove links", errno);
  report.bytes = copy.bytes();
  report.entries = copy.entries();
  report.passed_over = copy.passed_over();
  return Ok{};
}

[[noreturn]] void run_helper(const CaptureJob& job, int report_end, pid_t launcher) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(1);  // it died before it could take us along
  ::umask(0);
  CaptureReport report;
  if (auto done = copy_all(job, report); !done) {
    const auto& error = done.error();
    report.sys = error.sys() != 0 ? error.sys() : EIO;
    error.what().copy(report.detail, sizeof report.detail - 1);
  }
  bool told = ::write(report_end, &report, sizeof report) == static_cast<ssize_t>(sizeof report);
  ::_exit(told ? 0 : 1);
}

}  // namespace

Result<CaptureHelper> start_capture(const CaptureJob& job) {
  TRY(auto report, sys::make_pipe(O_NONBLOCK));
  CaptureHelper helper{Fd(), std::move(report.read)};
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_PIDFD;
  args.exit_signal = SIGCHLD;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  pid_t launcher = ::getpid();
  int child = raw::clone3(args);
  if (child < 0) return Error::from_errno("clone snapshot helper", errno);
  if (child == 0) run_helper(job, report.write.get(), launcher);
  helper.pidfd = Fd(pidfd);
  return helper;
}

}  // namespace osb::launch
