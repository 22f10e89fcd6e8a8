#include "daemon/grpc_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cerrno>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "http/listener.h"
#include "sys/raw.h"

namespace osb::daemon {
namespace {

using namespace std::chrono_literals;
using Descriptor = asio::posix::basic_stream_descriptor<Executor>;

constexpr int kListenerFd = 3;
constexpr auto kFirstPause = 200ms;
constexpr auto kLongestPause = 30s;
constexpr auto kHealthyAfter = 60s;  // a program that lived so long is started again at once
constexpr auto kStopGrace = 2s;

struct Pipe {
  Fd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::from_errno("pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

GrpcProgram::GrpcProgram(asio::io_context& io, GrpcConfig config, std::string program, std::string relay)
    : io_(io), config_(std::move(config)), program_(std::move(program)), relay_(std::move(relay)), tasks_(io.get_executor()) {}

Result<std::uint16_t> GrpcProgram::start() {
  TRY(auto listener, http::listen_on_tcp(config_.listen, config_.port));
  listener_ = std::move(listener.fd);
  TRY(auto process, spawn());
  tasks_.spawn("opensandbox-grpc", keep_alive(std::move(process)));
  return http::local_port(listener_.get());
}

Task<void> GrpcProgram::stop() {
  co_await tasks_.stop();
  listener_.reset();
}

// posix_spawn, not fork: nothing of ours runs between the two programs. It gets three descriptors and no environment.
Result<GrpcProgram::Process> GrpcProgram::spawn() const {
  TRY(auto pipe, make_pipe());
  std::vector<std::string> args{program_,
                                "--relay",
                                relay_,
                                "--connections",
                                cat(config_.max_connections),
                                "--streams",
                                cat(config_.max_streams),
                                "--calls",
                                cat(config_.max_calls)};
  std::vector<char*> argv;
  for (auto& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  char* environment[] = {nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe.read.get(), 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, listener_.get(), kListenerFd);
  Process process;
  int error = ::posix_spawn(&process.pid, argv[0], &actions, nullptr, argv.data(), environment);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Error::from_errno("start " + program_, error, Errc::unavailable);
  process.pidfd = Fd(sys::raw::pidfd_open(process.pid));
  process.lifeline = std::move(pipe.write);
  if (!process.pidfd) return Error::from_errno("pidfd_open", errno);
  return process;
}

Task<void> GrpcProgram::wait_exit(Process& process) {
  Descriptor ended(io_.get_executor(), ::fcntl(process.pidfd.get(), F_DUPFD_CLOEXEC, 0));
  auto [failed] = co_await ended.async_wait(Descriptor::wait_read, nothrow);
  if (!failed) co_return;
  // We are being stopped. Its end of the pipe closes first; it is not asked twice.
  process.lifeline.reset();
  Timer limit(io_.get_executor(), kStopGrace);
  limit.async_wait([&process](boost::system::error_code error) {
    if (!error) sys::raw::pidfd_send_signal(process.pidfd.get(), SIGKILL);
  });
  co_await ended.async_wait(Descriptor::wait_read, nothrow);
  limit.cancel();
}

Task<void> GrpcProgram::keep_alive(Process process) {
  co_await asio::this_coro::throw_if_cancelled(false);
  std::chrono::steady_clock::duration pause = kFirstPause;
  for (;;) {
    auto since = std::chrono::steady_clock::now();
    co_await wait_exit(process);
    siginfo_t info{};
    ::waitid(P_PIDFD, static_cast<id_t>(process.pidfd.get()), &info, WEXITED);
    auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) co_return;
    log::error("opensandbox-grpc has ended and is started again", {{"code", info.si_code}, {"status", info.si_status}});
    for (;;) {
      pause = std::chrono::steady_clock::now() - since > kHealthyAfter ? kFirstPause : pause;
      Timer timer(io_.get_executor(), pause);
      co_await timer.async_wait(nothrow);
      pause = std::min<std::chrono::steady_clock::duration>(pause * 2, kLongestPause);
      state = co_await asio::this_coro::cancellation_state;
      if (state.cancelled() != asio::cancellation_type::none) co_return;
      auto next = spawn();
      if (next) {
        process = *std::move(next);
        break;
      }
      log::error("opensandbox-grpc cannot be started", {{"error", next.error().what()}});
    }
  }
}

}  // namespace osb::daemon
