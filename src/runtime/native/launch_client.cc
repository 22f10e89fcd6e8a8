#include "runtime/native/launch_client.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/text.h"
#include "sys/descriptor_message.h"
#include "sys/raw.h"

extern char** environ;

namespace osb::runtime {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongestPause = 50ms;  // of whoever waits for room in the socket

// Takes an entry off its list on every way out: a coroutine that was cancelled before it waits leaves by an exception.
template <class List>
class Listed {
 public:
  Listed(List& list, List::key_type key) : list_(list), key_(key) {}
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;
  ~Listed() { list_.erase(key_); }

 private:
  List& list_;
  List::key_type key_;
};

// What a failed start said on stderr: why, and on a second line perhaps the way out.
Error told_in(int fd) {
  char text[1024];
  auto n = ::pread(fd, text, sizeof text, 0);
  if (n <= 0) return Error(Errc::unavailable, "no reason given");
  auto lines = split(std::string_view(text, static_cast<std::size_t>(n)), '\n');
  Error error(Errc::unavailable, std::string(lines[0]));
  constexpr std::string_view kHint = "hint: ";
  if (lines.size() < 2 || !lines[1].starts_with(kHint)) return error;
  return std::move(error).with_hint(lines[1].substr(kHint.size()));
}

std::vector<std::string> arguments_of(const LaunchOptions& options) {
  std::vector<std::string> args = {options.launch_path, "--run-dir",        options.run_dir, "--data-dir", options.data_dir,
                                   "--execd",           options.execd_path, "--background",  "--log",      options.run_dir + "/launch.log"};
  if (options.private_instance) args.push_back("--private");
  if (!options.confines)
    args.insert(args.end(), {"--instance", options.instance, "--ranges-dir", options.ranges_dir, "--pool", cat(options.parts)});
  if (!options.workspace.empty()) args.insert(args.end(), {"--workspace", options.workspace});
  return args;
}

Result<pid_t> spawn_launcher(const LaunchOptions& options, int error_fd) {
  auto args = arguments_of(options);
  std::vector<char*> argv;
  for (auto& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, error_fd, 2);
  pid_t pid = 0;
  int error = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Error::from_errno("start " + options.launch_path, error, Errc::unavailable);
  return pid;
}

}  // namespace

LaunchClient::LaunchClient(asio::io_context& io, LaunchOptions options)
    : io_(io), options_(std::move(options)), tasks_(io.get_executor()) {}
LaunchClient::~LaunchClient() = default;

Task<Result<>> LaunchClient::start() {
  auto connected = co_await connect_or_spawn();
  if (connected) tasks_.spawn("launcher connection", read_loop());
  co_return connected;
}

Task<void> LaunchClient::stop() {
  stopping_ = true;
  co_await tasks_.stop();
  announce_return();
  fail_waiters();
  socket_.reset();
}

Result<> LaunchClient::connect() {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::from_errno("socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string path = options_.run_dir + "/launch.sock";
  if (path.size() >= sizeof address.sun_path) return Error(Errc::invalid_argument, "run directory path is too long: " + options_.run_dir);
  std::memcpy(address.sun_path, path.data(), path.size());
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return Error::from_errno("connect to the launcher", errno, Errc::unavailable);
  socket_ = std::make_unique<Descriptor>(io_.get_executor(), socket.release());
  return Ok{};
}

// The launcher answers its starter by exiting once it listens; its own life goes on in a session of its own.
Task<Result<>> LaunchClient::spawn() {
  Fd said(::memfd_create("launch-stderr", MFD_CLOEXEC));
  if (!said) co_return Error::from_errno("memfd_create", errno);
  CO_TRY(auto pid, spawn_launcher(options_, said.get()));
  Fd pidfd(sys::raw::pidfd_open(pid));
  if (!pidfd) co_return Error::from_errno("pidfd_open", errno);
  Descriptor exit(io_.get_executor(), pidfd.release());
  Timer limit(io_.get_executor(), 20s);
  limit.async_wait([&exit](const boost::system::error_code& ec) {
    if (!ec) exit.cancel();
  });
  co_await exit.async_wait(Descriptor::wait_read, nothrow);
  limit.cancel();
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(exit.native_handle()), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) {
    sys::raw::pidfd_send_signal(exit.native_handle(), SIGKILL);
    co_return Error(Errc::timeout, "the launcher did not get ready in 20 s");
  }
  if (info.si_code != CLD_EXITED || info.si_status != 0) co_return told_in(said.get());
  co_return Ok{};
}

Task<Result<>> LaunchClient::connect_or_spawn() {
  if (connect()) co_return Ok{};
  auto spawned = co_await spawn();
  // Another starter may have been faster; then its launcher is ours too.
  auto connected = connect();
  if (!connected && !spawned) co_return std::move(spawned).error();
  co_return connected;
}

Result<std::uint64_t> LaunchClient::send(std::string& message, int descriptor) {
  if (!socket_) return Error(Errc::unavailable, "the launcher is being restarted").with_hint("try again in a moment");
  std::uint64_t seq = next_seq_++;
  std::memcpy(message.data() + offsetof(wire::Head, seq), &seq, sizeof seq);
  if (sys::send_with_descriptor(socket_->native_handle(), message.data(), message.size(), descriptor) >= 0) return seq;
  bool full = errno == EAGAIN || errno == EWOULDBLOCK;
  return Error::from_errno(full ? "the launcher is overloaded" : "the launcher is gone", errno, full ? Errc::exhausted : Errc::unavailable);
}

Result<> LaunchClient::tell(std::string message, int descriptor) {
  TRY([[maybe_unused]] auto seq, send(message, descriptor));
  return Ok{};
}

// A launcher that died is back in a moment: whoever asks meanwhile waits instead of being sent away.
Task<void> LaunchClient::wait_for_return(Timer::time_point until) {
  Timer patience(io_.get_executor(), until);
  without_launcher_.insert(&patience);
  Listed listed(without_launcher_, &patience);
  co_await patience.async_wait(nothrow);
}

void LaunchClient::announce_return() {
  for (auto* patience : without_launcher_) patience->cancel();
}

// `message` is that of ask(), which waits.
Task<Result<std::uint64_t>> LaunchClient::send_when_possible(std::string& message, int descriptor, Timer::time_point until) {
  auto patience = std::min<Timer::time_point>(until, Timer::clock_type::now() + options_.return_patience);
  std::chrono::milliseconds pause = 1ms;
  for (;;) {
    auto sent = send(message, descriptor);
    bool full = !sent && sent.error().kind() == Errc::exhausted;
    if (sent || stopping_ || Timer::clock_type::now() >= (full ? until : patience)) co_return sent;
    if (full) co_await sleep_for(pause);
    if (!full) co_await wait_for_return(patience);
    pause = std::min<std::chrono::milliseconds>(pause * 2, kLongestPause);
  }
}

Task<Result<LaunchAnswer>> LaunchClient::ask(std::string message, int descriptor, std::chrono::steady_clock::duration deadline) {
  auto sent = send(message, descriptor);
  if (!sent) sent = co_await send_when_possible(message, descriptor, Timer::clock_type::now() + deadline);
  if (!sent) co_return std::move(sent).error();
  auto seq = *sent;
  Waiter waiter(io_.get_executor());
  waiter.done.expires_after(deadline);
  waiters_.emplace(seq, &waiter);
  Listed listed(waiters_, seq);
  co_await waiter.done.async_wait(nothrow);
  if (!waiter.answered && waiter.lost)
    co_return Error(Errc::unavailable, "the launcher was lost before it answered").with_hint("try again in a moment");
  if (!waiter.answered) co_return Error(Errc::timeout, "the launcher did not answer");
  co_return std::move(waiter.answer);
}

Result<> LaunchClient::read_ready() {
  for (;;) {
    alignas(8) char buffer[wire::kMaxMessage];
    Fd descriptor;
    auto n = sys::receive_with_descriptor(socket_->native_handle(), buffer, sizeof buffer, MSG_DONTWAIT, descriptor);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Ok{};
    if (n <= 0) return Error(Errc::unavailable, "the launcher closed the connection");
    take(std::string(buffer, static_cast<std::size_t>(n)), std::move(descriptor));
  }
}

void LaunchClient::take(std::string bytes, Fd descriptor) {
  wire::Head head;
  if (bytes.size() < sizeof head) return;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.op == wire::Op::exited && bytes.size() >= sizeof(wire::ExitedEvent)) {
    wire::ExitedEvent event;
    std::memcpy(&event, bytes.data(), sizeof event);
    if (event_) event_(event);
    return;
  }
  auto found = waiters_.find(head.seq);
  if (found == waiters_.end()) return;  // its asker has given up
  found->second->answered = true;
  found->second->answer = {std::move(bytes), std::move(descriptor)};
  found->second->done.cancel();
}

void LaunchClient::fail_waiters() {
  for (auto& [seq, waiter] : waiters_) {
    waiter->lost = true;
    waiter->done.cancel();
  }
}

Task<void> LaunchClient::read_loop() {
  while (!stopping_) {
    auto [ec] = co_await socket_->async_wait(Descriptor::wait_read, nothrow);
    if (ec || stopping_) break;
    auto read = read_ready();
    if (read) continue;
    log::warn("launcher connection lost", {{"error", read.error().what()}});
    socket_.reset();
    fail_waiters();
    for (auto pause = 10ms; !stopping_; pause = std::min<std::chrono::milliseconds>(pause * 2, 2000ms)) {
      auto back = co_await connect_or_spawn();
      if (back) break;
      log::error("cannot restart the launcher", {{"error", back.error().what()}});
      co_await sleep_for(pause);
    }
    announce_return();
    if (!stopping_ && reconnected_) tasks_.spawn("after reconnect", reconnected_());
  }
}

}  // namespace osb::runtime
