#include "launch/stem.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>

#include "base/log.h"
#include "enter/plan_message.h"
#include "launch/end_child.h"
#include "sys/descriptor_message.h"
#include "sys/raw.h"

namespace osb::launch {
namespace {

constexpr int kSocket = 3;
constexpr int kRoom = 4 << 20;

// Between fork and exec: nothing of the launcher's but the socket goes along.
[[noreturn]] void become_stem(int execd, int socket) {
  char name[] = "execd";
  char mode[] = "--stem";
  char* argv[] = {name, mode, nullptr};
  char* envp[] = {nullptr};
  int high = ::fcntl(socket, F_DUPFD_CLOEXEC, 200);
  int program = ::fcntl(execd, F_DUPFD_CLOEXEC, 200);
  if (high < 0 || program < 0 || ::dup2(high, kSocket) != kSocket || sys::raw::close_range(kSocket + 1, ~0u, CLOSE_RANGE_CLOEXEC) != 0)
    ::_exit(125);
  sys::raw::execute(program, argv, envp);
  ::_exit(125);
}

}  // namespace

Result<> Stem::start() {
  stop();
  TRY(program_, execd_.take());
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return Error::from_errno("socketpair", errno);
  Fd ours(ends[0]);
  Fd theirs(ends[1]);
  // Room for the plans of a burst; without the right to that much, what is asked beyond the usual fails one by one.
  ::setsockopt(ours.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kRoom, sizeof kRoom);
  pid_ = ::fork();
  if (pid_ == 0) become_stem(program_->get(), theirs.get());
  if (pid_ < 0) return Error::from_errno("fork", errno);
  socket_ = std::move(ours);
  fresh_ = true;
  divisions_ = 0;
  return Ok{};
}

void Stem::stop() {
  std::ranges::move(under_way_, std::back_inserter(lost_));
  under_way_.clear();
  socket_.reset();
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);  // also where there is no descriptor left to wait with
  Fd pidfd(sys::raw::pidfd_open(pid_));
  if (!pidfd || !end_child(pidfd.get())) log::error("a stem does not die", {{"pid", pid_}});
  pid_ = 0;
}

void Stem::freshen() {
  if (!wants_change()) return;
  if (auto started = start(); !started) log::error("cannot start the stem", {{"error", started.error().what()}});
}

Result<> Stem::send(const enter::PlanMessage& message) {
  if (!socket_) CHECK_OK(start());
  auto sent = sys::send_with_descriptors(socket_.get(), message.bytes.data(), message.bytes.size(), message.descriptors.data(),
                                         message.descriptors.size());
  if (sent == static_cast<ssize_t>(message.bytes.size())) return Ok{};
  auto error = Error::from_errno("ask the stem", errno);
  if (error.sys() != EAGAIN) stop();  // one that has much to do is not dead
  return error;
}

bool Stem::has_died() {
  char byte = 0;
  return socket_ && !is_busy() && ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

Result<> Stem::divide(const enter::EnterPlan& plan, std::string id, std::uint64_t now) {
  auto message = enter::write_plan(plan);
  if (message.bytes.size() > enter::kMaxPlanBytes) return Error(Errc::too_large, "plan", E2BIG);
  auto sent = send(message);
  if (!sent && !socket_) sent = send(message);  // one that was killed did not get the message; the next one does
  if (!sent) return sent;
  under_way_.push_back({std::move(id), now});
  ++divisions_;
  return Ok{};
}

Stem::Answer Stem::take(std::deque<Asked>& from, std::int32_t child, ProgramCopy program) {
  Answer answer{std::move(from.front().id), child, std::move(program)};
  from.pop_front();
  return answer;
}

std::optional<Stem::Answer> Stem::next_answer() {
  if (is_busy()) {
    std::int32_t child = 0;
    auto n = ::recv(socket_.get(), &child, sizeof child, MSG_DONTWAIT);
    if (n == sizeof child) return take(under_way_, child, program_);
    if (n >= 0 || (errno != EAGAIN && errno != EINTR)) stop();
  }
  if (has_lost()) return take(lost_, -EPIPE, {});
  return std::nullopt;
}

}  // namespace osb::launch
