#include "launch/stem.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/log.h"
#include "enter/plan_message.h"
#include "sys/descriptor_message.h"

namespace osb::launch {
namespace {

constexpr int kSocket = 3;

// Between fork and exec: nothing of the launcher's but the socket goes along.
[[noreturn]] void become_stem(int execd, int socket) {
  char name[] = "execd";
  char mode[] = "--stem";
  char* argv[] = {name, mode, nullptr};
  char* envp[] = {nullptr};
  int high = ::fcntl(socket, F_DUPFD_CLOEXEC, 200);
  int program = ::fcntl(execd, F_DUPFD_CLOEXEC, 200);
  if (high < 0 || program < 0 || ::dup2(high, kSocket) != kSocket) ::_exit(125);
  ::syscall(SYS_execveat, program, "", argv, envp, AT_EMPTY_PATH);
  ::_exit(125);
}

}  // namespace

Result<> Stem::start() {
  stop();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return Error::from_errno("socketpair", errno);
  Fd ours(ends[0]);
  Fd theirs(ends[1]);
  pid_ = ::fork();
  if (pid_ == 0) become_stem(execd_.get(), theirs.get());
  if (pid_ < 0) return Error::from_errno("fork", errno);
  socket_ = std::move(ours);
  fresh_ = true;
  divisions_ = 0;
  return Ok{};
}

void Stem::stop() {
  socket_.reset();
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

void Stem::freshen() {
  if (!wants_rest()) return;
  if (auto started = start(); !started) log::error("cannot start the stem", {{"error", started.error().what()}});
}

Result<> Stem::send(const enter::PlanMessage& message) {
  if (!socket_) CHECK_OK(start());
  auto sent = sys::send_with_descriptors(socket_.get(), message.bytes.data(), message.bytes.size(), message.descriptors.data(),
                                         message.descriptors.size());
  if (sent == static_cast<ssize_t>(message.bytes.size())) return Ok{};
  auto error = Error::from_errno("ask the stem", errno);
  stop();
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
  // One that was killed did not get the message; the next one does, unless others still wait to hear from the first.
  if (!sent && !is_busy()) sent = send(message);
  if (!sent) return sent;
  under_way_.push_back({std::move(id), now});
  ++divisions_;
  return Ok{};
}

std::optional<Stem::Answer> Stem::next_answer() {
  if (under_way_.empty()) return std::nullopt;
  Answer answer;
  auto n = socket_ ? ::recv(socket_.get(), &answer.child, sizeof answer.child, MSG_DONTWAIT) : 0;
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  answer.id = std::move(under_way_.front().id);
  under_way_.pop_front();
  if (n == sizeof answer.child) return answer;
  stop();
  answer.child = -EPIPE;
  return answer;
}

}  // namespace osb::launch
