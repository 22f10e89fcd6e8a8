// Every way a sandbox ends: a failed create, a delete, a deadline, the end of its own first program.
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "launch/launcher.h"
#include "sys/raw.h"

namespace osb::launch {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kPatience = 100 * kMillisecond;
constexpr std::uint64_t kRestBeforeTrim = 500 * kMillisecond;
constexpr int kTrimmedAtOnce = 16;
constexpr std::uint64_t kBreath = kMillisecond;
constexpr std::uint64_t kTurn = 4 * kMillisecond;  // what is waiting for us waits no longer for the removal of groups
constexpr std::size_t kCrowd = 128;
constexpr std::size_t kMostPutOff = 256;
constexpr std::uint64_t kEndsPerSettling = 64;

}  // namespace

void Launcher::kill(Sandbox& sandbox, wire::Cause cause) {
  if (sandbox.phase == Phase::dying) return;
  sandbox.phase = Phase::dying;
  sandbox.cause = cause;
  sandbox.killed_at = static_cast<std::uint64_t>(boot_now_nanos());
  if (sandbox.freeze) clients_.reply_status(*std::exchange(sandbox.freeze, std::nullopt), wire::Op::freeze, ENOENT);
  stop_capture(sandbox);
  if (sandbox.capture && !sandbox.capture->helper) end_capture(sandbox, ENOENT, "the sandbox has ended");
  ::unlink(socket_path(sandbox.id).c_str());  // nobody new can reach it
  if (sandbox.dividing) return;               // on_divided() goes on from here
  if (sandbox.pid == 0) return finish(sandbox);
  // The end of pid 1 is the end of every process in its namespace, and costs one call.
  if (sys::raw::pidfd_send_signal(sandbox.pidfd.get(), SIGKILL) != 0)
    log::error("kill failed", {{"id", sandbox.id}, {"error", std::strerror(errno)}});
  schedule(sandbox.killed_at + kPatience, Chore::hasten, sandbox.id);
}

// The group's own kill reaches whatever the end of pid 1 has not, and gets what a throttled group dies slowly without. It is not
// used again: the kernel kills whatever is cloned into a group that was ever killed as a whole.
void Launcher::hasten(Sandbox& sandbox, std::uint64_t now) {
  if (sandbox.phase != Phase::dying || sandbox.pid == 0) return;
  sandbox.spoils = true;
  groups_.hasten_death(sandbox.berth.group.name);
  (void)groups_.kill(sandbox.berth.group.name);
  if (now - sandbox.killed_at > 10'000 * kMillisecond) log::error("sandbox does not die", {{"id", sandbox.id}, {"pid", sandbox.pid}});
  schedule(now + kPatience, Chore::hasten, sandbox.id);
}

// pid 1 of a pid namespace is reaped only after every other process in it is dead.
void Launcher::on_pid_exit(Sandbox& sandbox) {
  siginfo_t info{};
  bool ours = ::waitid(P_PIDFD, static_cast<id_t>(sandbox.pidfd.get()), &info, WEXITED) == 0;
  unwatch(sandbox.pidfd.get());
  sandbox.pidfd.reset();
  sandbox.pid = 0;
  sandbox.status = ours ? info.si_status : 0;
  if (sandbox.started) {
    unwatch(sandbox.started.get());
    sandbox.started.reset();
  }
  if (sandbox.report) take_report(sandbox);  // a failed step speaks through the pipe before its process ends
  if (sandbox.create && sandbox.failed == wire::Step::none) {
    sandbox.failed = wire::Step::exec;
    sandbox.failed_errno = EPIPE;
    sandbox.failed_detail = "execd ended at once";
  }
  if (sandbox.phase != Phase::dying) {
    // It ended by itself. Only a process the launcher started itself tells how; an adopted one ends without a word.
    sandbox.phase = Phase::dying;
    sandbox.cause = !ours ? wire::Cause::unknown : info.si_code == CLD_EXITED ? wire::Cause::exited : wire::Cause::signalled;
    sandbox.killed_at = static_cast<std::uint64_t>(boot_now_nanos());
    ::unlink(socket_path(sandbox.id).c_str());
  }
  finish(sandbox);
}

void Launcher::finish(Sandbox& sandbox) {
  if (sandbox.capture) {
    // Its helper holds a copy of the mounts; nothing of the sandbox is gone before that is.
    stop_capture(sandbox);
    if (!sandbox.capture->helper) end_capture(sandbox, ENOENT, "the sandbox has ended");
    if (sandbox.capture) return schedule(static_cast<std::uint64_t>(boot_now_nanos()) + 2 * kMillisecond, Chore::retry_remove, sandbox.id);
  }
  if (!clear_berth(sandbox))
    return schedule(static_cast<std::uint64_t>(boot_now_nanos()) + 2 * kMillisecond, Chore::retry_remove, sandbox.id);
  if (sandbox.cause == wire::Cause::signalled && sandbox.usage.oom_kills > 0) sandbox.cause = wire::Cause::out_of_memory;
  bool never_lived = sandbox.create.has_value();
  if (never_lived) answer_create(sandbox);
  wire::ExitedEvent event;
  sandbox.id.copy(event.id.text, sizeof event.id.text);
  event.cause = sandbox.cause;
  event.status = sandbox.status;
  event.cpu_nanos = sandbox.usage.cpu_nanos;
  event.memory_peak_bytes = sandbox.usage.memory_peak_bytes;
  event.oom_kills = sandbox.usage.oom_kills;
  ++ends_;
  chores_.drop_all_of(sandbox.id);
  arm_timer();
  held_.erase(sandbox.number);
  sandboxes_.erase(sandboxes_.find(std::string(sandbox.id)));
  if (!never_lived) clients_.broadcast(&event, sizeof event);
}

bool Launcher::is_crowded() const { return sandboxes_.size() > kCrowd; }

// The record is struck when no process is left; a launcher that is killed in between leaves a record without processes, or a group
// without a record, which the next one clears.
bool Launcher::clear_berth(Sandbox& sandbox) {
  Berth& berth = sandbox.berth;
  if (!berth.group.name.empty() && !sandbox.usage_read) {
    if (is_crowded() && ends_ % kEndsPerSettling == 0) groups_.settle_usage();
    sandbox.usage = with_group(sandbox, [&](const Group& group) { return groups_.final_usage(group); });
    sandbox.usage_read = true;
  }
  auto range = berth.range;
  auto outcome = sandbox.spoils || !sandbox.has_range ? Berths::Return::spoiled : berths_.put_back(berth);
  if (outcome == Berths::Return::busy) return false;
  bool spoiled = outcome == Berths::Return::spoiled;
  bool has_group = spoiled && !berth.group.name.empty();
  bool put_off = has_group && sandbox.has_range && is_crowded();
  if (put_off) {
    berths_.put_off(std::move(berth));
  } else if (has_group) {
    if (auto removed = groups_.remove(berth.group.name); !removed) {
      // The last process is reaped but may still be leaving its groups.
      if (removed.error().sys() != EBUSY) log::error("cannot remove cgroup", {{"id", sandbox.id}, {"error", removed.error().what()}});
      return false;
    }
  }
  if (sandbox.recorded) ledger_.strike(range);
  if (spoiled && !put_off && sandbox.has_range) ranges_.give_back(range);
  trim_reserve_later();
  return true;
}

// What a busy time left in reserve goes a few at a time, and only while nothing new is asked for.
void Launcher::trim_reserve_later() {
  bool removes = berths_.groups_put_off() > 0;
  if (trim_due_ || !(berths_.more_than_kept() || berths_.holds_roots() || removes)) return;
  trim_due_ = true;
  auto wait = removes && may_remove_groups() ? kBreath : kRestBeforeTrim;
  schedule(static_cast<std::uint64_t>(boot_now_nanos()) + wait, Chore::trim, {});
}

// When the crowd has gone, or more groups are there than ever had sandboxes in them.
bool Launcher::may_remove_groups() const {
  return !is_crowded() || berths_.groups_put_off() + sandboxes_.size() > most_at_once_ + kMostPutOff;
}

void Launcher::trim_reserve() {
  trim_due_ = false;
  bool resting = creates_ + ends_ == turns_at_trim_;
  auto turn_ends = static_cast<std::uint64_t>(boot_now_nanos()) + kTurn;
  auto in_turn = [&] { return static_cast<std::uint64_t>(boot_now_nanos()) < turn_ends; };
  while ((resting || may_remove_groups()) && in_turn() && berths_.remove_put_off()) {
  }
  if (berths_.groups_put_off() == 0) most_at_once_ = sandboxes_.size();
  for (int i = 0; resting && i < kTrimmedAtOnce && in_turn() && berths_.more_than_kept(); ++i) berths_.trim_one();
  if (resting) berths_.drop_stale_roots(static_cast<std::uint64_t>(boot_now_nanos()));
  turns_at_trim_ = creates_ + ends_;
  trim_reserve_later();
}

void Launcher::destroy_all(wire::Cause cause) {
  std::vector<std::string> ids;
  for (const auto& [id, sandbox] : sandboxes_) ids.push_back(id);
  for (const auto& id : ids)
    if (auto* sandbox = find(id)) kill(*sandbox, cause);
}

}  // namespace osb::launch
