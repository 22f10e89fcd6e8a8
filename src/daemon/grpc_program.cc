#include "daemon/grpc_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/log.h"
#include "base/program_exit.h"
#include "base/text.h"
#include "http/listener.h"
#include "sys/pipe.h"
#include "sys/raw.h"

namespace osb::daemon {
namespace {

using namespace std::chrono_literals;

constexpr int kListenerFd = 3;
constexpr auto kFirstPause = 200ms;
constexpr auto kLongestPause = 30s;
constexpr auto kHealthyAfter = 60s;  // a program that lived so long is started again at once
constexpr auto kStopGrace = 2s;

// A child that cannot be watched would run for nobody and stay a zombie after that. Ours and not waited for: the number is still its own.
void end_and_reap(pid_t child) {
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Task<bool> being_stopped() {
  auto state = co_await asio::this_coro::cancellation_state;
  co_return state.cancelled() != asio::cancellation_type::none;
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
Result<GrpcProgram::Process> GrpcProgram::spawn() {
  TRY(auto pipe, sys::make_pipe());
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
  pid_t child = -1;
  int error = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environment);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Error::from_errno("start " + program_, error, Errc::unavailable);
  auto pidfd = watch(child);
  if (!pidfd) end_and_reap(child);
  if (!pidfd) return std::move(pidfd).error();
  return Process{*std::move(pidfd), std::move(pipe.write)};
}

Result<std::shared_ptr<GrpcProgram::Pidfd>> GrpcProgram::watch(pid_t child) {
  Fd fd(sys::raw::pidfd_open(child));
  if (!fd) return Error::from_errno("pidfd_open", errno);
  auto pidfd = std::make_shared<Pidfd>(io_.get_executor());
  boost::system::error_code failed;
  pidfd->assign(fd.get(), failed);
  if (failed) return Error::from_errno("watch pidfd", failed.value());
  (void)fd.release();  // the descriptor object owns it
  return pidfd;
}

// When it has ended, by itself or because we are being stopped: then its end of the pipe closes first, and it is not asked twice.
Task<siginfo_t> GrpcProgram::wait_exit(Process process) {
  auto pidfd = process.pidfd;
  auto [failed] = co_await pidfd->async_wait(Pidfd::wait_read, nothrow);
  if (failed) {
    process.lifeline.reset();
    Timer limit(io_.get_executor(), kStopGrace);
    // Owns what it uses: an expiry that is under way when the wait ends cannot be cancelled any more.
    limit.async_wait([pidfd](boost::system::error_code cancelled) {
      if (!cancelled) sys::raw::pidfd_send_signal(pidfd->native_handle(), SIGKILL);
    });
    co_await pidfd->async_wait(Pidfd::wait_read, nothrow);
    sys::raw::pidfd_send_signal(pidfd->native_handle(), SIGKILL);  // nothing to one that has ended; the wait below is short in any case
  }
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(pidfd->native_handle()), &info, WEXITED);
  co_return info;
}

// Tries until it succeeds, each time a little later. None: we are being stopped.
Task<std::optional<GrpcProgram::Process>> GrpcProgram::spawn_after(std::chrono::steady_clock::duration& pause) {
  for (;;) {
    Timer timer(io_.get_executor(), pause);
    co_await timer.async_wait(nothrow);
    pause = std::min<std::chrono::steady_clock::duration>(pause * 2, kLongestPause);
    bool stopped = co_await being_stopped();
    if (stopped) co_return std::nullopt;
    auto next = spawn();
    if (next) co_return *std::move(next);
    log::error("opensandbox-grpc cannot be started", {{"error", next.error().what()}});
  }
}

Task<void> GrpcProgram::keep_alive(Process process) {
  co_await asio::this_coro::throw_if_cancelled(false);
  std::chrono::steady_clock::duration pause = kFirstPause;
  for (;;) {
    auto since = std::chrono::steady_clock::now();
    auto info = co_await wait_exit(std::move(process));
    bool stopped = co_await being_stopped();
    if (stopped) co_return;
    if (info.si_code == CLD_EXITED && info.si_status == kExitNeverHere) {
      log::error("opensandbox-grpc cannot run on this host, as it says above: there is no gRPC; all other doors are open");
      given_up_ = true;
      listener_.reset();
      co_return;
    }
    log::error("opensandbox-grpc has ended and is started again", {{"code", info.si_code}, {"status", info.si_status}});
    if (std::chrono::steady_clock::now() - since > kHealthyAfter) pause = kFirstPause;
    auto next = co_await spawn_after(pause);
    if (!next) co_return;
    process = *std::move(next);
  }
}

}  // namespace osb::daemon
