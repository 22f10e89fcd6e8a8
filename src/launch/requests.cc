// What a client may ask of an existing sandbox.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "launch/launcher.h"
#include "launch/measure.h"
#include "launch/namespaces.h"

namespace osb::launch {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kFreezeLimit = 2'000 * kMillisecond;

}  // namespace

void Launcher::set_deadline(const Pending& to, const wire::DeadlineRequest& request) {
  auto* sandbox = find(request.id);
  if (sandbox == nullptr || sandbox->phase == Phase::dying) return clients_.reply_status(to, wire::Op::set_deadline, ENOENT);
  auto before = std::exchange(sandbox->deadline, request.deadline_boot_nanos);
  if (auto kept = record(*sandbox); !kept) {
    sandbox->deadline = before;
    return clients_.reply_status(to, wire::Op::set_deadline, kept.error().sys(), "ledger");
  }
  if (sandbox->deadline != 0) schedule(sandbox->deadline, Chore::deadline, sandbox->id);
  clients_.reply_status(to, wire::Op::set_deadline, 0);
}

void Launcher::freeze(const Pending& to, Sandbox& sandbox) {
  if (sandbox.phase != Phase::live || sandbox.freeze || sandbox.capture) return clients_.reply_status(to, wire::Op::freeze, EBUSY);
  if (auto asked = groups_.freeze(sandbox.berth.group.name, true); !asked)
    return clients_.reply_status(to, wire::Op::freeze, asked.error().sys(), "cgroup.freeze");
  sandbox.freeze = to;
  sandbox.spoils = true;
  sandbox.killed_at = static_cast<std::uint64_t>(boot_now_nanos());
  check_frozen(sandbox);
}

// A process in the kernel freezes when it comes back to user space; asking again is cheap and needs no descriptor.
void Launcher::check_frozen(Sandbox& sandbox) {
  bool for_snapshot = sandbox.capture && sandbox.capture->thaw && !sandbox.capture->helper;
  if (!sandbox.freeze && !for_snapshot) return;
  auto now = static_cast<std::uint64_t>(boot_now_nanos());
  if (for_snapshot) {
    if (groups_.frozen(sandbox.berth.group.name)) return begin_capture(sandbox);
    if (now - sandbox.capture->began > kFreezeLimit) return end_capture(sandbox, ETIMEDOUT, "processes do not freeze");
    return schedule(now + kMillisecond, Chore::check_frozen, sandbox.id);
  }
  if (groups_.frozen(sandbox.berth.group.name)) {
    sandbox.frozen = true;
    clients_.reply_status(*std::exchange(sandbox.freeze, std::nullopt), wire::Op::freeze, 0);
  } else if (now - sandbox.killed_at > kFreezeLimit) {
    (void)groups_.freeze(sandbox.berth.group.name, false);
    clients_.reply_status(*std::exchange(sandbox.freeze, std::nullopt), wire::Op::freeze, ETIMEDOUT, "processes do not freeze");
  } else {
    schedule(now + kMillisecond, Chore::check_frozen, sandbox.id);
  }
}

void Launcher::thaw(const Pending& to, Sandbox& sandbox) {
  if (sandbox.capture) return clients_.reply_status(to, wire::Op::thaw, EBUSY);
  auto thawed = groups_.freeze(sandbox.berth.group.name, false);
  if (thawed) sandbox.frozen = false;
  clients_.reply_status(to, wire::Op::thaw, thawed ? 0 : thawed.error().sys(), thawed ? "" : "cgroup.freeze");
}

void Launcher::dial(const Pending& to, Sandbox& sandbox) {
  auto socket = socket_in_network_of(sandbox.pid);
  if (!socket) return clients_.reply_status(to, wire::Op::dial, socket.error().sys(), "socket in sandbox");
  clients_.reply_status(to, wire::Op::dial, 0, {}, socket->get());
}

void Launcher::list(const Pending& to, const wire::ListRequest& request) {
  static wire::ListReply page;
  page = {};
  page.head.seq = to.seq;
  std::string after(request.after.text, ::strnlen(request.after.text, sizeof request.after.text));
  auto at = after.empty() ? sandboxes_.begin() : sandboxes_.upper_bound(after);
  for (; at != sandboxes_.end() && page.count < wire::ListReply::kPage; ++at) {
    auto& entry = page.entries[page.count++];
    std::memcpy(entry.id.text, at->first.data(), at->first.size());
    entry.pid = at->second.pid;
    entry.frozen = at->second.frozen;
    entry.dying = at->second.phase == Phase::dying;
    entry.spare = at->second.spare_of != 0;
  }
  page.more = at != sandboxes_.end();
  std::size_t unused = (wire::ListReply::kPage - page.count) * sizeof(wire::ListEntry);
  clients_.reply(to, &page, sizeof page - unused);
}

void Launcher::usage(const Pending& to, Sandbox& sandbox) {
  auto now = with_group(sandbox, [&](const Group& group) { return groups_.usage(group); });
  auto store = store_of(sandbox.pid);
  auto network = network_of(sandbox.pid);
  wire::UsageReply answer;
  answer.head.seq = to.seq;
  answer.cpu_nanos = now.cpu_nanos;
  answer.cpu_throttled_nanos = now.cpu_throttled_nanos;
  answer.cpu_limit_millis = now.cpu_limit_millis;
  answer.memory_bytes = now.memory_bytes;
  answer.memory_peak_bytes = now.memory_peak_bytes;
  answer.memory_limit_bytes = now.memory_limit_bytes;
  answer.memory_reclaimable_bytes = now.memory_reclaimable_bytes;
  answer.pids = now.pids;
  answer.pids_limit = now.pids_limit;
  answer.oom_kills = now.oom_kills;
  answer.disk_bytes = store.total_bytes - store.free_bytes;
  answer.disk_limit_bytes = store.total_bytes;
  answer.network_received_bytes = network.received_bytes;
  answer.network_sent_bytes = network.sent_bytes;
  clients_.reply(to, &answer, sizeof answer);
}

}  // namespace osb::launch
