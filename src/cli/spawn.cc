#include "cli/spawn.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>

#include "base/text.h"
#include "cli/api.h"
#include "sys/pipe.h"
#include "sys/raw.h"

extern char** environ;

namespace osb::cli {
namespace {

// posix_spawn's two bags, freed together.
struct Plan {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  Plan() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~Plan() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
};

void describe(Plan& plan, int ready_write, int log_fd) {
  ::posix_spawn_file_actions_addopen(&plan.actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&plan.actions, 1, "/dev/null", O_WRONLY, 0);
  if (log_fd >= 0)
    ::posix_spawn_file_actions_adddup2(&plan.actions, log_fd, 2);
  else
    ::posix_spawn_file_actions_addopen(&plan.actions, 2, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&plan.actions, ready_write, kReadyFd);
  ::posix_spawn_file_actions_addclosefrom_np(&plan.actions, kReadyFd + 1);
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2}) sigaddset(&usual, number);
  ::posix_spawnattr_setsigmask(&plan.attributes, &none);
  ::posix_spawnattr_setsigdefault(&plan.attributes, &usual);
  ::posix_spawnattr_setflags(&plan.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
}

// A pipe whose ends stand clear of the numbers the child gives out.
Result<Pipe> high_pipe() {
  TRY(auto low, sys::make_pipe());
  Pipe out{Fd(::fcntl(low.read.get(), F_DUPFD_CLOEXEC, 10)), Fd(::fcntl(low.write.get(), F_DUPFD_CLOEXEC, 10))};
  if (!out.read || !out.write) return Error::from_errno("fcntl", errno);
  return out;
}

Result<std::string> read_line(int fd, Millis within, Signals* signals) {
  auto deadline = std::chrono::steady_clock::now() + within;
  std::string line;
  while (!line.contains('\n')) {
    auto left = std::chrono::ceil<Millis>(deadline - std::chrono::steady_clock::now()).count();
    pollfd fds[2] = {{fd, POLLIN, 0}, {signals != nullptr ? signals->fd() : -1, POLLIN, 0}};
    int ready = left <= 0 ? 0 : ::poll(fds, 2, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0)
      return Error(Errc::timeout, cat("the daemon is not ready after ", format_duration(std::chrono::ceil<std::chrono::seconds>(within))));
    if (fds[1].revents != 0) return Error(Errc::unavailable, "interrupted", EINTR);
    char bytes[4096];
    auto n = ::read(fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return line;
    line.append(bytes, static_cast<std::size_t>(n));
    if (line.size() > 64 * 1024) return Error(Errc::malformed, "the daemon's ready line has no end");
  }
  return line;
}

}  // namespace

Result<std::string> serve_program() { return program_beside("opensandbox-serve"); }

Result<std::string> program_beside(std::string_view name) {
  char path[PATH_MAX];
  auto n = ::readlink("/proc/self/exe", path, sizeof path);
  if (n <= 0) return Error::from_errno("find our own program", errno);
  auto here = std::string_view(path, static_cast<std::size_t>(n));
  here = here.substr(0, here.rfind('/'));
  for (auto candidate : {cat(here, "/", name), cat(here, "/../libexec/opensandbox/", name)})
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  return Error(Errc::unavailable, cat(name, " is not installed beside this program"))
      .with_hint("install the package again, or build all targets");
}

Result<Child> spawn_serve(const std::vector<std::string>& words, int log_fd) {
  TRY(auto program, serve_program());
  TRY(auto pipe, high_pipe());
  Fd log(log_fd >= 0 ? ::fcntl(log_fd, F_DUPFD_CLOEXEC, 10) : -1);
  Plan plan;
  describe(plan, pipe.write.get(), log.get());
  std::vector<std::string> argv{"opensandbox", "serve", "--ready-fd", cat(kReadyFd)};
  argv.insert(argv.end(), words.begin(), words.end());
  std::vector<char*> raw;
  for (auto& word : argv) raw.push_back(word.data());
  raw.push_back(nullptr);
  Child child;
  int failed = ::posix_spawn(&child.pid, program.c_str(), &plan.actions, &plan.attributes, raw.data(), environ);
  if (failed != 0) return Error::from_errno("start the daemon", failed);
  child.process.reset(sys::raw::pidfd_open(child.pid));
  child.ready = std::move(pipe.read);
  return child;
}

Result<boost::json::object> wait_ready(Child& child, Millis within, Signals* signals) {
  TRY(auto line, read_line(child.ready.get(), within, signals));
  auto object = parse_object(line);
  if (!object)
    return Error(Errc::internal, "the daemon ended before it was ready").with_hint("`opensandbox serve` in a terminal shows why");
  const auto* ready = object->if_contains("ready");
  if (ready != nullptr && ready->is_bool() && ready->get_bool()) return object;
  auto why = text_of(*object, "error");
  return Error(Errc::unavailable, why.empty() ? "the daemon could not start" : why).with_hint(text_of(*object, "hint"));
}

bool wait_exit(int process, Millis within) {
  pollfd waiting{process, POLLIN, 0};
  auto deadline = std::chrono::steady_clock::now() + within;
  for (;;) {
    auto left = std::chrono::ceil<Millis>(deadline - std::chrono::steady_clock::now()).count();
    int ready = ::poll(&waiting, 1, left <= 0 ? 0 : static_cast<int>(left));
    if (ready > 0) return true;
    if (ready == 0 && left <= 0) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

}  // namespace osb::cli
