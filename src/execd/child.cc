#include "execd/child.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include <cstring>
#include <vector>

#include "sys/raw.h"

namespace osb::execd {
namespace {

constexpr std::uint32_t bit(unsigned capability) { return 1u << capability; }
constexpr std::uint32_t kRootMode = bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_FOWNER) | bit(CAP_FSETID) | bit(CAP_SETUID) |
                                    bit(CAP_SETGID) | bit(CAP_KILL) | bit(CAP_NET_BIND_SERVICE);

// Everything the child needs as plain pointers, made before the fork.
struct Image {
  const ChildPlan& plan;
  std::vector<char*> argvs;  // of all attempts, one behind the other, each ended by a null
  std::string variables;     // "NAME=value" of all, each ended by a NUL
  std::vector<char*> envp;
  std::size_t underscore = 0;  // index in envp of "_"
  std::string_view path;       // where programs are looked for
  // Written by the child behind the compiler's back.
  volatile ChildStep failed = ChildStep::none;
  volatile int sys = 0;
};

std::vector<char*> pointers_to(std::span<const Attempt> attempts) {
  std::size_t count = 0;
  for (const Attempt& attempt : attempts) count += attempt.argv.size() + 1;
  std::vector<char*> pointers;
  pointers.reserve(count);
  for (const Attempt& attempt : attempts) {
    for (const std::string& word : attempt.argv) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
  }
  return pointers;
}

void add_variables(Image& image, const Variables& env) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  env.each([&](const std::string& name, const std::string& value) {
    bytes += name.size() + value.size() + 2;
    ++count;
  });
  image.variables.reserve(bytes);  // what has been pointed to stays where it is
  image.envp.reserve(count + 2);
  env.each([&](const std::string& name, const std::string& value) {
    if (name == "_") return;
    image.envp.push_back(image.variables.data() + image.variables.size());
    image.variables += name;
    image.variables += '=';
    image.variables += value;
    image.variables += '\0';
  });
  image.underscore = image.envp.size();
  image.envp.push_back(nullptr);
  image.envp.push_back(nullptr);
}

Image make_image(const ChildPlan& plan) {
  Variables env(*plan.env, plan.base_env);
  Image image{.plan = plan, .argvs = pointers_to(plan.attempts), .variables = {}, .envp = {}, .path = kDefaultPath};
  if (const std::string* path = env.find("PATH")) image.path = *path;
  add_variables(image, env);
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
  bool has_them = image.plan.groupless && who.groups.empty();
  if (!has_them && ::syscall(SYS_setgroups, who.groups.size(), who.groups.data()) != 0) return failed(image, ChildStep::groups);
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

// A place to look, written as the entry "_=PATH" that a shell would set.
class Place {
 public:
  // False when no path of the kernel's is that long.
  bool name(std::string_view directory, std::string_view program) {
    if (directory.size() + program.size() + 2 > sizeof text_ - 2) return errno = ENAMETOOLONG, false;
    char* end = put(text_ + 2, directory);
    if (!directory.empty() && !directory.ends_with('/')) *end++ = '/';
    *put(end, program) = '\0';
    return true;
  }
  char* entry() { return text_; }
  const char* path() const { return text_ + 2; }

 private:
  static char* put(char* to, std::string_view text) { return static_cast<char*>(::memcpy(to, text.data(), text.size())) + text.size(); }
  char text_[2 + PATH_MAX + 1] = {'_', '='};
};

// Everywhere the program of one argv may be. The places are put together here, on the stack: nearly always the first is the one.
void try_everywhere(Image& image, char** argv, Place& place, int& denied) {
  std::string_view program = argv[0];
  bool search = program.find('/') == std::string_view::npos;
  std::string_view rest = image.path;
  image.envp[image.underscore] = place.entry();
  for (bool more = true; more;) {
    auto end = rest.find(':');
    more = search && end != std::string_view::npos;
    std::string_view directory = rest.substr(0, end);
    if (!place.name(!search ? "" : directory.empty() ? "." : directory, program)) return;
    ::execve(place.path(), argv, image.envp.data());
    if (errno == EACCES) denied = EACCES;
    if (!try_next_place(place.path())) return;
    if (more) rest.remove_prefix(end + 1);
  }
}

void execute(Image& image) {
  int denied = 0;
  Place place;
  char** argv = image.argvs.data();
  for (std::size_t i = 0; i < image.plan.attempts.size(); ++i) {
    try_everywhere(image, argv, place, denied);
    argv += image.plan.attempts[i].argv.size() + 1;
  }
  if (errno == ENOENT && denied != 0) errno = denied;
  failed(image, ChildStep::exec);
}

[[gnu::noinline]] void run_steps(Image& image) {
  const ChildPlan& plan = image.plan;
  sigset_t nothing;
  ::sigemptyset(&nothing);
  ::sigprocmask(SIG_SETMASK, &nothing, nullptr);
  // The kernel makes a scheduling group for every session, which costs more than all the other steps up to the directory.
  bool apart = plan.keeps_session ? ::setpgid(0, 0) == 0 : ::setsid() >= 0;
  if (!apart) return void(failed(image, ChildStep::session));
  // Where the tag cannot be set the tree is still found by its session and its parents.
  rlimit tag{plan.tag, plan.tag};
  if (plan.tag != 0) ::setrlimit(RLIMIT_LOCKS, &tag);
  if (plan.open_files) ::setrlimit(RLIMIT_NOFILE, &*plan.open_files);
  if (plan.who && !become(image, *plan.who)) return;
  if (!keep_only(plan.capabilities)) return void(failed(image, ChildStep::capabilities));
  // Before the directory: nothing of execd's is open when a path is followed.
  if (!take_descriptors(plan)) return void(failed(image, ChildStep::descriptors));
  if (plan.terminal && ::ioctl(0, TIOCSCTTY, 0) != 0) return void(failed(image, ChildStep::terminal));
  bool inside = enter_directory(plan.cwd) || (plan.cwd_may_be_missing && enter_directory("/"));
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
