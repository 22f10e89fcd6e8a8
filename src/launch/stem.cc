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

// All that came from one stem have their addresses and their stack guard in common; these are drawn anew so often.
constexpr unsigned kDivisions = 256;
constexpr int kSocket = 3;
constexpr timeval kAnswerDeadline{5, 0};

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
  ::setsockopt(ours.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerDeadline, sizeof kAnswerDeadline);
  pid_ = ::fork();
  if (pid_ == 0) become_stem(execd_.get(), theirs.get());
  if (pid_ < 0) return Error::from_errno("fork", errno);
  socket_ = std::move(ours);
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
  if (socket_ && divisions_ < kDivisions) return;
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

Result<std::int32_t> Stem::divide(const enter::EnterPlan& plan) {
  auto message = enter::write_plan(plan);
  if (message.bytes.size() > enter::kMaxPlanBytes) return Error(Errc::too_large, "plan", E2BIG);
  // One that was killed did not get the message; the next one does.
  if (!send(message)) CHECK_OK(send(message));
  int answer = 0;
  if (::read(socket_.get(), &answer, sizeof answer) != sizeof answer) {
    auto error = Error::from_errno("the stem does not answer", errno == 0 ? EPIPE : errno);
    stop();  // whatever became of the message, nothing more comes of it
    return error;
  }
  ++divisions_;
  if (answer < 0) return Error::from_errno("clone3", -answer);
  return answer;
}

}  // namespace osb::launch
