#include "confine/keeper.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "launch/run_dir.h"
#include "sys/fs_walk.h"
#include "sys/kernel_file.h"

namespace osb::confine {
namespace {

constexpr std::size_t kMaxClients = 16;
constexpr std::uint64_t kFirstClientWithin = 30'000'000'000;

std::uint64_t now_nanos() { return static_cast<std::uint64_t>(boot_now_nanos()); }

template <class Request>
const Request* as(const launch::Received& message) {
  return message.size >= sizeof(Request) ? reinterpret_cast<const Request*>(message.bytes) : nullptr;
}

bool is_free(const std::string& lock_file) {
  auto lock = sys::open_at(AT_FDCWD, lock_file.c_str(), O_RDWR);
  return lock && ::flock(lock->get(), LOCK_EX | LOCK_NB) == 0;
}

// Where command line, daemon and keeper of a private instance were all killed, only files are left: sockets and locks of nobody.
void sweep_dead_instances(const std::string& own) {
  auto slash = own.rfind('/');
  auto root = own.substr(0, slash), name = own.substr(slash + 1);
  for (const auto& other : sys::fs::names_in(root)) {
    std::string run_dir = cat(root, "/", other);
    if (other == name || !launch::is_private(run_dir)) continue;
    if (is_free(run_dir + "/lock") && is_free(run_dir + "/serve.pid")) launch::remove_run_dir(run_dir);
  }
}

}  // namespace

Result<std::unique_ptr<Keeper>> Keeper::start(const KeeperOptions& options) {
  const auto& run_dir = options.host.run_dir;
  CHECK_OK(sys::make_dirs(run_dir, 0700));
  TRY(auto lock, launch::lock_run_dir(run_dir, "keeper"));
  if (options.private_instance) CHECK_OK(launch::mark_private(run_dir));
  sweep_dead_instances(run_dir);
  TRY(auto host, Host::prepare(options.host));
  CHECK_OK(sys::make_dirs(run_dir + "/sandboxes", 0700));
  for (const auto& name : sys::fs::names_in(run_dir + "/sandboxes")) ::unlink(cat(run_dir, "/sandboxes/", name).c_str());
  std::unique_ptr<Keeper> keeper(new Keeper(options, std::move(host)));
  keeper->lock_ = std::move(lock);
  CHECK_OK(keeper->open_doors());
  return keeper;
}

Result<> Keeper::open_doors() {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  timer_ = Fd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll_ || !timer_) return Error::from_errno("epoll", errno);
  CHECK_OK(watch(timer_.get(), {Watched::timer}));
  TRY(listener_, launch::listen_seqpacket(options_.host.run_dir + "/launch.sock"));
  CHECK_OK(watch(listener_.get(), {Watched::listener}));
  give_up_at_ = now_nanos() + kFirstClientWithin;
  arm_timer();
  return Ok{};
}

Result<> Keeper::watch(int fd, Watch what) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return Error::from_errno("epoll add", errno);
  watches_.insert_or_assign(fd, std::move(what));
  return Ok{};
}

// Before the descriptor is closed: a process under way holds a copy that would keep the registration alive.
void Keeper::unwatch(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watches_.erase(fd);
}

bool Keeper::finished() const {
  bool abandoned = clients_.empty() && (had_client_ || now_nanos() >= give_up_at_);
  return (stopping_ || abandoned) && sandboxes_.empty();
}

Result<> Keeper::run() {
  while (!finished()) {
    if (had_client_ && clients_.empty()) destroy_all();
    epoll_event events[64];
    int n = ::epoll_wait(epoll_.get(), events, 64, -1);
    if (n < 0 && errno != EINTR) return Error::from_errno("epoll_wait", errno);
    for (int i = 0; i < n; ++i) {
      auto found = watches_.find(events[i].data.fd);
      if (found == watches_.end()) continue;  // closed by an earlier event of this round
      Watch copy = found->second;
      on_ready(events[i].data.fd, copy);
    }
  }
  leave_nothing();
  return Ok{};
}

// Whoever comes from now on finds nobody, starts the next keeper, and that one waits for our lock.
void Keeper::close_door() {
  if (!listener_) return;
  unwatch(listener_.get());
  listener_.reset();
  ::unlink((options_.host.run_dir + "/launch.sock").c_str());
}

void Keeper::leave_nothing() {
  const auto& run_dir = options_.host.run_dir;
  if (!launch::is_held(run_dir, lock_)) return;  // what is there now is not ours
  close_door();
  if (options_.private_instance) return launch::remove_run_dir(run_dir);
  for (const char* name : {"/work", "/sandboxes"}) ::rmdir((run_dir + name).c_str());
}

void Keeper::on_ready(int fd, const Watch& watch) {
  switch (watch.what) {
    case Watched::listener: return accept_client();
    case Watched::client: return read_client(watch.client);
    case Watched::timer: return on_timer();
    case Watched::helper: return reap_helper(fd);
    case Watched::report:
      if (auto* sandbox = find(watch.id)) on_report(*sandbox);
      return;
    case Watched::pid:
      if (auto* sandbox = find(watch.id)) on_pid_exit(*sandbox);
      return;
  }
}

void Keeper::accept_client() {
  Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket || clients_.size() >= kMaxClients || !launch::peer_is_allowed(socket.get(), ::geteuid())) return;
  auto number = next_client_++;
  int fd = socket.get();
  clients_.emplace(number, launch::Channel(std::move(socket)));
  had_client_ = true;
  if (auto watched = watch(fd, {Watched::client, number}); !watched) clients_.erase(number);
}

void Keeper::read_client(std::uint64_t client) {
  static launch::Received message;  // large; one thread uses it, one message at a time
  for (int i = 0; i < 64; ++i) {
    auto found = clients_.find(client);
    if (found == clients_.end()) return;
    if (found->second.is_behind()) return catch_up(client);
    auto got = found->second.receive(message);
    if (!got) return drop_client(client);
    if (!*got) return;
    dispatch(client, message);
  }
}

// Either what waits goes on its way, or we are told when there is room for it.
void Keeper::catch_up(std::uint64_t client) {
  if (auto sent = clients_.find(client)->second.catch_up(epoll_.get()); !sent) drop_client(client);
}

void Keeper::drop_client(std::uint64_t client) {
  auto found = clients_.find(client);
  if (found == clients_.end()) return;
  unwatch(found->second.fd());
  clients_.erase(found);
}

void Keeper::dispatch(std::uint64_t client, launch::Received& message) {
  const auto* head = as<wire::Head>(message);
  if (head == nullptr || head->version != wire::kVersion) return drop_client(client);
  Pending to{client, head->seq};
  auto of_sandbox = [&](auto act) {
    const auto* request = as<wire::SandboxRequest>(message);
    auto* sandbox = request == nullptr ? nullptr : find(request->id);
    if (sandbox == nullptr || sandbox->phase == Phase::dying) return reply_status(to, head->op, ENOENT);
    act(*sandbox);
  };
  switch (head->op) {
    case wire::Op::hello: {
      wire::HelloReply hello;
      hello.head.seq = to.seq;
      hello.pid = static_cast<std::uint32_t>(::getpid());
      hello.live = static_cast<std::uint32_t>(sandboxes_.size());
      hello.landlock_abi = static_cast<std::uint32_t>(host_.facts().landlock_abi);
      return reply(to, &hello, sizeof hello);
    }
    case wire::Op::create: {
      constexpr std::size_t kWithoutLayers = sizeof(wire::CreateRequest) - sizeof(wire::CreateRequest::layers);
      static wire::CreateRequest request;
      request = {};
      std::memcpy(&request, message.bytes, std::min(message.size, sizeof request));
      if (message.size < kWithoutLayers + request.layer_count * sizeof(wire::Digest)) return drop_client(client);
      return create(to, request, std::move(message.descriptor));
    }
    case wire::Op::destroy:
      return of_sandbox([&](Sandbox& sandbox) {
        kill(sandbox, wire::Cause::destroyed);
        reply_status(to, wire::Op::destroy, 0);
      });
    case wire::Op::dial: return of_sandbox([&](const Sandbox& sandbox) { dial(to, sandbox); });
    case wire::Op::usage: return of_sandbox([&](const Sandbox& sandbox) { usage(to, sandbox); });
    case wire::Op::set_deadline:
      if (const auto* request = as<wire::DeadlineRequest>(message)) return set_deadline(to, *request);
      return drop_client(client);
    case wire::Op::list:
      if (const auto* request = as<wire::ListRequest>(message)) return list(to, *request);
      return drop_client(client);
    case wire::Op::stop:
      stopping_ = true;
      close_door();
      reply_status(to, wire::Op::stop, 0);
      return destroy_all();
    case wire::Op::freeze:
    case wire::Op::thaw:
    case wire::Op::snapshot:
    case wire::Op::stage_volume:
    case wire::Op::claim: return reply_status(to, head->op, EOPNOTSUPP);
    case wire::Op::exited: break;
  }
  drop_client(client);
}

void Keeper::reply(const Pending& to, const void* message, std::size_t size) {
  auto found = clients_.find(to.client);
  if (found == clients_.end()) return;
  if (auto sent = found->second.send(message, size); !sent) return drop_client(to.client);
  if (found->second.is_behind()) catch_up(to.client);
}

void Keeper::reply_status(const Pending& to, wire::Op op, int sys) {
  wire::StatusReply message;
  message.head.op = op;
  message.head.seq = to.seq;
  message.sys = sys;
  reply(to, &message, sizeof message);
}

void Keeper::broadcast(const void* message, std::size_t size) {
  std::vector<std::uint64_t> all;
  for (const auto& [number, channel] : clients_) all.push_back(number);
  for (auto number : all) reply({number, 0}, message, size);
}

Keeper::Sandbox* Keeper::find(const std::string& id) {
  auto found = sandboxes_.find(id);
  return found == sandboxes_.end() ? nullptr : &found->second;
}

Keeper::Sandbox* Keeper::find(const wire::Key& key) {
  std::string_view text(key.text, ::strnlen(key.text, sizeof key.text));
  return is_id_text(text) ? find(std::string(text)) : nullptr;
}

// A handful of sandboxes of one user: the next deadline is looked for, not kept in order. Zero disarms.
void Keeper::arm_timer() {
  std::uint64_t at = had_client_ ? 0 : give_up_at_;
  auto sooner = [&](std::uint64_t when) { at = at == 0 || when < at ? std::max<std::uint64_t>(when, 1) : at; };
  for (const auto& [id, sandbox] : sandboxes_) {
    if (sandbox.phase != Phase::dying && sandbox.deadline != 0) sooner(sandbox.deadline);
    if (sandbox.phase == Phase::live) sooner(next_look_);
  }
  itimerspec next{};
  next.it_value.tv_sec = static_cast<time_t>(at / 1'000'000'000);
  next.it_value.tv_nsec = static_cast<long>(at % 1'000'000'000);
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &next, nullptr);
}

void Keeper::on_timer() {
  std::uint64_t expirations = 0;
  [[maybe_unused]] auto n = ::read(timer_.get(), &expirations, sizeof expirations);
  auto now = now_nanos();
  std::vector<std::string> expired;
  for (const auto& [id, sandbox] : sandboxes_)
    if (sandbox.phase != Phase::dying && sandbox.deadline != 0 && sandbox.deadline <= now) expired.push_back(id);
  for (const auto& id : expired)
    if (auto* sandbox = find(id)) kill(*sandbox, wire::Cause::expired);
  look_at_memory(now);
  arm_timer();
}

}  // namespace osb::confine
