#include "cli/private_daemon.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/id.h"
#include "base/text.h"
#include "cli/api.h"
#include "cli/terminal.h"
#include "model/places.h"
#include "sys/fs_open.h"
#include "sys/fs_walk.h"
#include "sys/raw.h"

namespace osb::cli {
namespace {

constexpr Millis kReadyWithin{20'000};
constexpr Millis kStopWithin{15'000};

std::string run_root() { return usual_run_dir() + "/"; }
std::string state_root() { return usual_state_dir() + "/private/"; }

// The daemon removes both itself; this is for one that was killed. Follows no link and enters no mount.
void remove_tree(const std::string& root, const std::string& name) {
  if (auto parent = sys::fs::open_directory(root)) (void)sys::fs::remove_tree(parent->get(), name);
}

// A daemon that was killed leaves its state directory; its launcher has removed the rest. Nobody holds the lock of such a
// directory, and a daemon that is only starting has made its run directory first.
void remove_dead_states() {
  auto root = sys::fs::open_directory(state_root());
  auto names = root ? sys::fs::list_dir(root->get(), 10'000) : Result<std::vector<std::string>>(root.error());
  if (!names) return;
  for (const auto& name : *names) {
    if (::access(cat(run_root(), name).c_str(), F_OK) == 0) continue;
    Fd lock(::open(cat(state_root(), name, "/lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) remove_tree(state_root(), name);
  }
}

// What the daemon logged, kept in memory and shown only when it fails to start.
std::string tail_of(int log_fd) {
  char bytes[4096];
  auto n = ::pread(log_fd, bytes, sizeof bytes, 0);
  return n > 0 ? std::string(bytes, static_cast<std::size_t>(n)) : std::string();
}

}  // namespace

PrivateDaemon::PrivateDaemon(Child child, std::string instance)
    : child_(std::move(child)), address_{true, cat(run_root(), instance, "/api.sock"), 0}, instance_(std::move(instance)) {}

Result<PrivateDaemon> PrivateDaemon::start(Signals& signals, const PrivateOptions& options) {
  if (::geteuid() != 0 && options.runtime != "process")
    return Error(Errc::permission_denied, "no daemon runs here, and starting one for this command alone needs root")
        .with_hint("sudo opensandbox daemon start, name a daemon with --host, or use --runtime process, which needs no root");
  auto instance = cat("private-run-", ::getpid(), "-", random_hex(4));
  Fd log(::memfd_create("opensandbox-log", MFD_CLOEXEC));
  std::vector<std::string> words{"--private",   cat(::getpid()), "--instance", instance, "--state-dir", cat(state_root(), instance),
                                 "--log-level", "warn"};
  if (!options.runtime.empty()) words.push_back(cat("--runtime=", options.runtime));
  if (!options.workspace.empty()) words.push_back(cat("--process-workspace=", options.workspace));
  TRY(auto child, spawn_serve(words, log.get()));
  PrivateDaemon daemon(std::move(child), instance);
  auto ready = wait_ready(daemon.child_, kReadyWithin, &signals);
  if (!ready) {
    bool unexplained = ready.error().kind() == Errc::internal || ready.error().kind() == Errc::timeout;
    if (unexplained) note(tail_of(log.get()));
    return std::move(ready).error().in("start a private daemon");
  }
  if (auto socket = text_of(*ready, "socket"); !socket.empty()) daemon.address_.host = socket;
  return daemon;
}

void PrivateDaemon::stop() noexcept {
  if (!child_.process) return;
  sys::raw::pidfd_send_signal(child_.process.get(), SIGTERM);
  if (!wait_exit(child_.process.get(), kStopWithin)) sys::raw::pidfd_send_signal(child_.process.get(), SIGKILL);
  ::waitpid(child_.pid, nullptr, 0);
  child_.process.reset();
  remove_tree(run_root(), instance_);
  remove_tree(state_root(), instance_);
  remove_dead_states();
}

}  // namespace osb::cli
