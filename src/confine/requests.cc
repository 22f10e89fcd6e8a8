// What serve may ask of a sandbox that exists.
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "confine/keeper.h"
#include "confine/processes.h"
#include "launch/measure.h"
#include "sys/descriptor_message.h"
#include "sys/raw.h"

namespace osb::confine {
namespace {

// Between clone and exit, in a process of its own: whoever has entered a user namespace does not come back.
[[noreturn]] void fetch_socket(int client, int pidfd, wire::StatusReply answer) {
  int socket = -1;
  if (::setns(pidfd, CLONE_NEWUSER | CLONE_NEWNET) == 0) socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  answer.sys = socket < 0 ? errno : 0;
  sys::send_with_descriptor(client, &answer, sizeof answer, socket);
  ::_exit(0);
}

}  // namespace

void Keeper::set_deadline(const Pending& to, const wire::DeadlineRequest& request) {
  auto* sandbox = find(request.id);
  if (sandbox == nullptr || sandbox->phase == Phase::dying) return clients_.reply_status(to, wire::Op::set_deadline, ENOENT);
  sandbox->deadline = request.deadline_boot_nanos;
  arm_timer();
  clients_.reply_status(to, wire::Op::set_deadline, 0);
}

void Keeper::list(const Pending& to, const wire::ListRequest& request) {
  static wire::ListReply page;  // large
  page = {};
  page.head.seq = to.seq;
  std::string after(request.after.text, ::strnlen(request.after.text, sizeof request.after.text));
  auto at = sandboxes_.upper_bound(after);
  for (; at != sandboxes_.end() && page.count < wire::ListReply::kPage; ++at) {
    auto& entry = page.entries[page.count++];
    at->first.copy(entry.id.text, sizeof entry.id.text);
    entry.pid = at->second.pid;
    entry.dying = at->second.phase == Phase::dying;
  }
  page.more = at != sandboxes_.end();
  clients_.reply(to, &page, sizeof page - (wire::ListReply::kPage - page.count) * sizeof(wire::ListEntry));
}

void Keeper::usage(const Pending& to, const Sandbox& sandbox) {
  ProcessUse now;
  auto inside = processes_in({pid_namespace_of(sandbox.pid)});
  for (const auto& process : inside.front()) {
    now.tasks += process.tasks;
    now.resident_bytes += process.resident_bytes;
    now.cpu_nanos += process.cpu_nanos;
  }
  auto store = host_.workspace().empty() ? launch::store_of(sandbox.pid) : sys::fs::Space{};
  auto network = launch::network_of(sandbox.pid);
  wire::UsageReply answer;
  answer.head.seq = to.seq;
  answer.cpu_nanos = now.cpu_nanos;
  answer.memory_bytes = now.resident_bytes;
  answer.memory_limit_bytes = sandbox.limits.memory_bytes;
  answer.oom_kills = sandbox.oom_kills;
  answer.pids = now.tasks;
  answer.pids_limit = sandbox.limits.pids;
  answer.disk_bytes = store.total_bytes - store.free_bytes;
  answer.disk_limit_bytes = store.total_bytes;
  answer.network_received_bytes = network.received_bytes;
  answer.network_sent_bytes = network.sent_bytes;
  clients_.reply(to, &answer, sizeof answer);
}

void Keeper::dial(const Pending& to, const Sandbox& sandbox) {
  int client = clients_.socket_of(to.client);
  if (client < 0) return;
  wire::StatusReply answer;
  answer.head.op = wire::Op::dial;
  answer.head.seq = to.seq;
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  int child = sys::raw::clone3(args);
  if (child == 0) fetch_socket(client, sandbox.pidfd.get(), answer);
  if (child < 0) return clients_.reply_status(to, wire::Op::dial, errno);
  helpers_.emplace(pidfd, Fd(pidfd));
  if (auto watched = watch(pidfd, {Watched::helper}); !watched) reap_helper(pidfd);
}

void Keeper::reap_helper(int fd) {
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(fd), &info, WEXITED);
  unwatch(fd);
  helpers_.erase(fd);
}

}  // namespace osb::confine
