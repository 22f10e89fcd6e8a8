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

constexpr std::uint64_t kFirstClientWithin = 30'000'000'000;

std::uint64_t now_nanos() { return static_cast<std::uint64_t>(boot_now_nanos()); }

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
  bool abandoned = clients_.empty() && (clients_.had_any() || now_nanos() >= give_up_at_);
  return (stopping_ || abandoned) && sandboxes_.empty();
}

Result<> Keeper::run() {
  while (!finished()) {
    if (clients_.had_any() && clients_.empty()) destroy_all();
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
    case Watched::client: return clients_.read(watch.client);
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
  clients_.accept(Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)), ::geteuid());
}

void Keeper::dispatch(std::uint64_t client, launch::Received& message) {
  const auto* head = message.as<wire::Head>();
  if (head == nullptr || head->version != wire::kVersion) return clients_.drop(client);
  Pending to{client, head->seq};
  auto of_sandbox = [&](auto act) {
    const auto* request = message.as<wire::SandboxRequest>();
    auto* sandbox = request == nullptr ? nullptr : find(request->id);
    if (sandbox == nullptr || sandbox->phase == Phase::dying) return clients_.reply_status(to, head->op, ENOENT);
    act(*sandbox);
  };
  switch (head->op) {
    case wire::Op::hello: {
      wire::HelloReply hello;
      hello.head.seq = to.seq;
      hello.pid = static_cast<std::uint32_t>(::getpid());
      hello.live = static_cast<std::uint32_t>(sandboxes_.size());
      hello.landlock_abi = static_cast<std::uint32_t>(host_.facts().landlock_abi);
      return clients_.reply(to, &hello, sizeof hello);
    }
    case wire::Op::create: {
      static wire::CreateRequest request;
      if (!launch::read_create(message, request)) return clients_.drop(client);
      return create(to, request, std::move(message.descriptor));
    }
    case wire::Op::destroy:
      return of_sandbox([&](Sandbox& sandbox) {
        kill(sandbox, wire::Cause::destroyed);
        clients_.reply_status(to, wire::Op::destroy, 0);
      });
    case wire::Op::dial: return of_sandbox([&](const Sandbox& sandbox) { dial(to, sandbox); });
    case wire::Op::usage: return of_sandbox([&](const Sandbox& sandbox) { usage(to, sandbox); });
    case wire::Op::set_deadline:
      if (const auto* request = message.as<wire::DeadlineRequest>()) return set_deadline(to, *request);
      return clients_.drop(client);
    case wire::Op::list:
      if (const auto* request = message.as<wire::ListRequest>()) return list(to, *request);
      return clients_.drop(client);
    case wire::Op::stop:
      stopping_ = true;
      close_door();
      clients_.reply_status(to, wire::Op::stop, 0);
      return destroy_all();
    case wire::Op::freeze:
    case wire::Op::thaw:
    case wire::Op::snapshot:
    case wire::Op::stage_volume:
    case wire::Op::claim: return clients_.reply_status(to, head->op, EOPNOTSUPP);
    case wire::Op::exited: break;
  }
  clients_.drop(client);
}

Keeper::Sandbox* Keeper::find(const std::string& id) {
  auto found = sandboxes_.find(id);
  return found == sandboxes_.end() ? nullptr : &found->second;
}

Keeper::Sandbox* Keeper::find(const wire::Key& key) {
  auto text = wire::text_of(key);
  return is_id_text(text) ? find(std::string(text)) : nullptr;
}

// A handful of sandboxes of one user: the next deadline is looked for, not kept in order. Zero disarms.
void Keeper::arm_timer() {
  std::uint64_t at = clients_.had_any() ? 0 : give_up_at_;
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
