// Spare sandboxes: made ahead of time, complete but for what is their claimer's. execd has started with what is known of the
// set-up and waits in front of a closed door; a claim hands it the rest, and the sandbox is like any other from then on. One
// that is never claimed has never run anything.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "launch/launcher.h"
#include "sys/descriptor_message.h"

namespace osb::launch {

// execd takes the end of this channel for the end of the launcher: a spare never outlives who could claim it.
Result<Fd> Launcher::open_set_up_channel(Sandbox& sandbox, const Fd& known) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return Error::from_errno("socketpair", errno);
  sandbox.set_up = Fd(ends[0]);
  Fd inner(ends[1]);
  if (sys::send_with_descriptor(sandbox.set_up.get(), "k", 1, known.get()) != 1) return Error::from_errno("hand over the set-up", errno);
  return inner;
}

void Launcher::claim(const Pending& to, const wire::ClaimRequest& request, Fd setup) {
  wire::CreateReply refused;
  refused.head.seq = to.seq;
  refused.failed = wire::Step::validate;
  auto* sandbox = find(request.id);
  bool spare = sandbox != nullptr && sandbox->phase == Phase::live && sandbox->set_up && sandbox->spare_of == to.client;
  refused.sys = sandbox == nullptr ? ENOENT : !spare ? EBUSY : EINVAL;
  if (!spare || !setup) return clients_.reply(to, &refused, sizeof refused);
  sandbox->create = to;
  if (auto handed = hand_over(*sandbox, request, setup); !handed) {
    sandbox->failed = wire::Step::entrypoint;
    sandbox->failed_errno = handed.error().sys();
    sandbox->failed_detail = handed.error().what();
    if (request.answer_at_once) answer_create(*sandbox);  // whoever claimed it does not wait for that: its end is told to all
    return kill(*sandbox, wire::Cause::destroyed);
  }
  if (request.answer_at_once) return answer_create(*sandbox);
  sandbox->phase = Phase::making;
  sandbox->failed = wire::Step::entrypoint;  // until execd says that it has started
}

// Nobody else knows of them: a client that comes back does not find its old ones again.
void Launcher::end_spares_of(std::uint64_t client) {
  std::vector<std::string> ids;
  for (const auto& [id, sandbox] : sandboxes_)
    if (sandbox.spare_of == client) ids.push_back(id);
  for (const auto& id : ids)
    if (auto* spare = find(id)) kill(*spare, wire::Cause::destroyed);
}

std::size_t Launcher::living() const {
  return static_cast<std::size_t>(
      std::count_if(sandboxes_.begin(), sandboxes_.end(), [](const auto& each) { return each.second.spare_of == 0; }));
}

Result<> Launcher::hand_over(Sandbox& sandbox, const wire::ClaimRequest& request, const Fd& setup) {
  sandbox.spare_of = 0;
  sandbox.deadline = request.deadline_boot_nanos;
  CHECK_OK(record(sandbox));
  if (sandbox.deadline != 0) schedule(sandbox.deadline, Chore::deadline, sandbox.id);
  if (sys::send_with_descriptor(sandbox.set_up.get(), "s", 1, setup.get()) != 1) return Error::from_errno("hand over the set-up", errno);
  sandbox.set_up.reset();
  return Ok{};
}

}  // namespace osb::launch
