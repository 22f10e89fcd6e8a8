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
#include "sys/fs_open.h"
#include "sys/fs_walk.h"
#include "sys/raw.h"

namespace osb::cli {
namespace {

constexpr Millis kReadyWithin{20'000};
constexpr Millis kStopWithin{15'000};
constexpr std::string_view kRunRoot = "/run/opensandbox/";
constexpr std::string_view kStateRoot = "/var/lib/opensandbox/private/";

// The daemon removes both itself; this is for one that was killed. Follows no link and enters no mount.
void remove_tree(std::string_view root, const std::string& name) {
  if (auto parent = sys::fs::open_directory(std::string(root))) (void)sys::fs::remove_tree(parent->get(), name);
}

// A daemon that was killed leaves its state directory; its launcher has removed the rest. Nobody holds the lock of such a
// directory, and a daemon that is only starting has made its run directory first.
void remove_dead_states() {
  auto root = sys::fs::open_directory(std::string(kStateRoot));
  auto names = root ? sys::fs::list_dir(root->get(), 10'000) : Result<std::vector<std::string>>(root.error());
  if (!names) return;
  for (const auto& name : *names) {
    if (::access(cat(kRunRoot, name).c_str(), F_OK) == 0) continue;
    Fd lock(::open(cat(kStateRoot, name, "/lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) remove_tree(kStateRoot, name);
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
    : child_(std::move(child)), address_{true, cat(kRunRoot, instance, "/api.sock"), 0}, instance_(std::move(instance)) {}

Result<PrivateDaemon> PrivateDaemon::start(Signals& signals) {
  if (::geteuid() != 0)
    return Error(Errc::permission_denied, "no daemon runs here, and starting one for this command alone needs root")
        .with_hint("sudo opensandbox daemon start, or name a daemon with --host");
  auto instance = cat("private-run-", ::getpid(), "-", random_hex(4));
  Fd log(::memfd_create("opensandbox-log", MFD_CLOEXEC));
  std::vector<std::string> words{"--private",   cat(::getpid()),           "--instance",  instance,
                                 "--state-dir", cat(kStateRoot, instance), "--log-level", "warn"};
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
  remove_tree(kRunRoot, instance_);
  remove_tree(kStateRoot, instance_);
  remove_dead_states();
}

}  // namespace osb::cli
