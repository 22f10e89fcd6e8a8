#include "execd/child.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/text.h"
#include "sys/raw.h"

namespace osb::execd {
namespace {

constexpr std::uint32_t bit(unsigned capability) { return 1u << capability; }
constexpr std::uint32_t kRootMode = bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_FOWNER) | bit(CAP_FSETID) | bit(CAP_SETUID) |
                                    bit(CAP_SETGID) | bit(CAP_KILL) | bit(CAP_NET_BIND_SERVICE);

// Everything the child needs as plain pointers, made before the fork.
struct Image {
  const ChildPlan& plan;
  std::vector<std::vector<char*>> argvs;
  std::vector<std::string> variables;
  std::vector<char*> envp;
  std::size_t underscore = 0;  // index in envp of "_"
  // Written by the child behind the compiler's back.
  volatile ChildStep failed = ChildStep::none;
  volatile int sys = 0;
};

Image make_image(const ChildPlan& plan) {
  Image image{.plan = plan, .argvs = {}, .variables = {}, .envp = {}};
  for (const Attempt& attempt : plan.attempts) {
    auto& argv = image.argvs.emplace_back();
    for (const std::string& word : attempt.argv) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
  }
  image.variables.reserve(plan.env->size());
  for (const auto& [name, value] : *plan.env)
    if (name != "_") image.variables.push_back(cat(name, "=", value));
  for (std::string& variable : image.variables) image.envp.push_back(variable.data());
  image.underscore = image.envp.size();
  image.envp.push_back(nullptr);
  image.envp.push_back(nullptr);
  return image;
}

// ---- below: between vfork and execve ----

bool failed(Image& image, ChildStep step) {
  image.failed = step;
  image.sys = errno;
  return false;
}

// The raw calls: the C library's own would also look at threads that do not exist here.
bool become(Image& image, const Identity& who) {
  if (::syscall(SYS_setgroups, who.groups.size(), who.groups.data()) != 0) return failed(image, ChildStep::groups);
  if (::syscall(SYS_setresgid, who.gid, who.gid, who.gid) != 0) return failed(image, ChildStep::gid);
  if (::syscall(SYS_setresuid, who.uid, who.uid, who.uid) != 0) return failed(image, ChildStep::uid);
  return true;
}

// The bounding set is already that of programs: execd shrinks its own when it starts.
bool keep_only(Capabilities capabilities) {
  if (capabilities == Capabilities::leave) return true;
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (capabilities == Capabilities::root_mode) sets[0].effective = sets[0].permitted = kRootMode;
  return ::syscall(SYS_capset, &head, sets) == 0;
}

bool take_descriptor(int from, int to) { return from < 0 || ::dup2(from, to) == to; }

bool take_descriptors(const ChildPlan& plan) {
  if (!take_descriptor(plan.in, 0) || !take_descriptor(plan.out, 1) || !take_descriptor(plan.err, 2)) return false;
  // Everything above is close-on-exec already; an old kernel without the call loses only the second lock.
  return sys::raw::close_range(3, ~0u, 0) == 0 || errno == ENOSYS;
}

// As the user of the program, so that a directory it cannot enter is refused, and never through the links of /proc
// that lead to another process's directories.
bool enter_directory(const char* path) {
  int fd = sys::raw::openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY, RESOLVE_NO_MAGICLINKS);
  bool entered = fd >= 0 ? ::fchdir(fd) == 0 : errno == ENOSYS && ::chdir(path) == 0;
  if (!entered) return false;
  // "(unreachable)..." is what the kernel says about a directory outside the root.
  char first[4096];
  long size = ::syscall(SYS_getcwd, first, sizeof first);
  if (size > 0 && first[0] == '/') return true;
  if (size >= 0) errno = EACCES;
  return false;
}

// ENOENT of a file that is there means its interpreter is missing: that is the answer, not a reason to look further.
bool try_next_place(const char* path) {
  if (errno == EACCES || errno == ENOTDIR) return true;
  if (errno != ENOENT) return false;
  bool absent = ::access(path, F_OK) != 0;
  errno = ENOENT;
  return absent;
}

void execute(Image& image) {
  int denied = 0;
  for (std::size_t i = 0; i < image.argvs.size(); ++i) {
    for (const std::string& place : image.plan.attempts[i].places) {
      const char* path = place.c_str() + 2;
      image.envp[image.underscore] = const_cast<char*>(place.c_str());
      ::execve(path, image.argvs[i].data(), image.envp.data());
      if (errno == EACCES) denied = EACCES;
      if (!try_next_place(path)) break;
    }
  }
  if (errno == ENOENT && denied != 0) errno = denied;
  failed(image, ChildStep::exec);
}

void restore_open_files(const ChildPlan& plan) {
  rlimit files{};
  if (!plan.open_files || ::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = *plan.open_files;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

[[gnu::noinline]] void run_steps(Image& image) {
  const ChildPlan& plan = image.plan;
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  sigset_t nothing;
  ::sigemptyset(&nothing);
  ::sigaction(SIGPIPE, &standard, nullptr);
  ::sigprocmask(SIG_SETMASK, &nothing, nullptr);
  if (::setsid() < 0) return void(failed(image, ChildStep::session));
  // Where the tag cannot be set the tree is still found by its session and its parents.
  rlimit tag{plan.tag, plan.tag};
  if (plan.tag != 0) ::setrlimit(RLIMIT_LOCKS, &tag);
  restore_open_files(plan);
  if (plan.who && !become(image, *plan.who)) return;
  if (!keep_only(plan.capabilities)) return void(failed(image, ChildStep::capabilities));
  // Before the directory: nothing of execd's is open when a path is followed.
  if (!take_descriptors(plan)) return void(failed(image, ChildStep::descriptors));
  if (plan.terminal && ::ioctl(0, TIOCSCTTY, 0) != 0) return void(failed(image, ChildStep::terminal));
  bool inside = enter_directory(plan.cwd.c_str()) || (plan.cwd_may_be_missing && enter_directory("/"));
  if (!inside) return void(failed(image, ChildStep::cwd));
  execute(image);
}

}  // namespace

const char* name_of(ChildStep step) {
  switch (step) {
    case ChildStep::none: return "none";
    case ChildStep::fork: return "fork";
    case ChildStep::session: return "session";
    case ChildStep::groups: return "groups";
    case ChildStep::gid: return "gid";
    case ChildStep::uid: return "uid";
    case ChildStep::capabilities: return "capabilities";
    case ChildStep::descriptors: return "descriptors";
    case ChildStep::terminal: return "terminal";
    case ChildStep::cwd: return "cwd";
    case ChildStep::exec: return "exec";
  }
  return "unknown";
}

ChildStart start_child(const ChildPlan& plan) {
  Image image = make_image(plan);
  // posix_spawn cannot change ids and capabilities; what the child does here is short and never waits.
  pid_t pid = ::vfork();  // NOLINT(bugprone-unsafe-functions)
  if (pid == 0) {
    run_steps(image);
    ::_exit(127);
  }
  if (pid < 0) return {.pid = -1, .failed = ChildStep::fork, .sys = errno};
  ChildStep failed_step = image.failed;
  if (failed_step != ChildStep::none) return {.pid = -1, .failed = failed_step, .sys = image.sys};
  return {.pid = pid};
}

}  // namespace osb::execd
