#include "launch/launcher.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "launch/run_dir.h"
#include "sys/kernel_file.h"

namespace osb::launch {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kCalm = 20 * kMillisecond;
constexpr std::uint64_t kPause = 5 * kMillisecond;

}  // namespace

Launcher::Launcher(LauncherOptions options, Host host, Cgroups groups, Ledger ledger, IdRanges ranges)
    : options_(std::move(options)),
      host_(std::move(host)),
      programs_(host_.execd()),
      groups_(std::move(groups)),
      ledger_(std::move(ledger)),
      ranges_(std::move(ranges)),
      berths_(ranges_, groups_, switches_, options_.pool),
      boot_id_(current_boot_id()) {}

Result<std::unique_ptr<Launcher>> Launcher::start(const LauncherOptions& options) {
  const auto& host_options = options.host;
  TRY(auto lock, lock_run_dir(host_options.run_dir, "launcher"));
  if (options.private_instance) CHECK_OK(mark_private(host_options.run_dir));
  auto run_root = host_options.run_dir.substr(0, host_options.run_dir.rfind('/'));
  sweep_dead_private_instances(run_root, host_options.ranges_dir, host_options.instance);
  TRY(auto groups, Cgroups::open(host_options.instance, host_options.run_dir + "/cgroup2"));
  TRY(auto host, Host::prepare(host_options));
  TRY(auto ledger, Ledger::open(host_options.run_dir + "/ledger"));
  TRY(auto ranges, IdRanges::open(host_options.ranges_dir, host_options.instance));
  CHECK_OK(sys::make_dirs(host_options.run_dir + "/sandboxes", 0700));
  std::unique_ptr<Launcher> launcher(new Launcher(options, std::move(host), std::move(groups), std::move(ledger), std::move(ranges)));
  launcher->lock_ = std::move(lock);
  CHECK_OK(launcher->groups_.join_device_rules());
  auto usual = static_cast<std::size_t>(std::clamp(::sysconf(_SC_NPROCESSORS_ONLN) / 4, 1l, 4l));
  for (std::size_t i = 0; i < (options.stems > 0 ? options.stems : usual); ++i) launcher->stems_.emplace_back(launcher->programs_);
  CHECK_OK(launcher->open_loop());
  launcher->freshen_stems();
  CHECK_OK(launcher->adopt());
  CHECK_OK(launcher->listen());  // last: whoever can connect finds the house in order
  return launcher;
}

Result<> Launcher::open_loop() {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  timer_ = Fd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll_ || !timer_) return Error::from_errno("epoll", errno);
  return watch(timer_.get(), {.what = Watched::timer, .client = 0, .id = {}});
}

Result<> Launcher::listen() {
  TRY(listener_, listen_seqpacket(options_.host.run_dir + "/launch.sock"));
  return watch(listener_.get(), {.what = Watched::listener, .client = 0, .id = {}});
}

Result<> Launcher::watch(int fd, Watch what) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return Error::from_errno("epoll add", errno);
  watches_.insert_or_assign(fd, std::move(what));
  return Ok{};
}

// Before the descriptor is closed: processes under way hold copies that would keep the registration alive.
void Launcher::unwatch(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watches_.erase(fd);
}

bool Launcher::finished() const {
  bool abandoned = options_.private_instance && clients_.had_any() && clients_.empty();
  bool retired = retiring_ && clients_.empty();
  if (homeless_ && !options_.private_instance) return true;
  bool ends = stopping_ || homeless_ || abandoned || retired;
  return ends && sandboxes_.empty() && !sprouting_ && berths_.groups_put_off() == 0;
}

Result<> Launcher::run() {
  while (!finished()) {
    bool nobodys = homeless_ || (clients_.had_any() && clients_.empty());
    if (options_.private_instance && nobodys) destroy_all(wire::Cause::destroyed);
    epoll_event events[64];
    // The reserve fills while nothing waits for us: first a look without waiting, then one part, then another look.
    int n = ::epoll_wait(epoll_.get(), events, 64, 0);
    if (n == 0) n = prepare_or_wait(events, 64);
    if (n < 0 && errno != EINTR) return Error::from_errno("epoll_wait", errno);
    for (int i = 0; i < n; ++i) {
      auto found = watches_.find(events[i].data.fd);
      if (found == watches_.end()) continue;  // closed by an earlier event of this round
      Watch copy = found->second;
      on_ready(events[i].data.fd, copy);
    }
  }
  if (homeless_ && !options_.private_instance)
    return Error(Errc::unavailable, "our directories were taken away; the next launcher takes over");
  leave_nothing();
  return Ok{};
}

// A part takes as long as half a create. Who has just got a sandbox is about to use it, and most sandboxes leave their berth as they found
// it: unless the reserve runs low, nothing is made until a little after the last create.
int Launcher::prepare_or_wait(epoll_event* events, int most) {
  auto rested = static_cast<std::uint64_t>(boot_now_nanos()) - last_create_;
  bool calm = rested > kCalm;
  if (calm) freshen_stems();
  if ((calm || berths_.runs_low()) && berths_.refill_one()) {
    trim_reserve_later();
    return 0;
  }
  if (rested > kPause && sprout_one()) return 0;
  int wait = rested <= kPause && wants_sprout() ? kPause / kMillisecond + 1 : !calm && berths_.wants_more() ? kCalm / kMillisecond : -1;
  return ::epoll_wait(epoll_.get(), events, most, wait);
}

void Launcher::on_ready(int fd, const Watch& watch) {
  switch (watch.what) {
    case Watched::listener: return accept_client();
    case Watched::stem: return hear_stems();
    case Watched::sprout: return on_sprout_death();
    case Watched::client: return clients_.read(watch.client);
    case Watched::timer: return run_due_chores();
    case Watched::helper: return reap_helper(fd);
    case Watched::report:
      if (auto* sandbox = find(watch.id)) on_report(*sandbox);
      return;
    case Watched::started:
      if (auto* sandbox = find(watch.id)) on_started(*sandbox);
      return;
    case Watched::capture:
      if (auto* sandbox = find(watch.id); sandbox != nullptr && sandbox->capture) on_capture_end(*sandbox);
      return;
    case Watched::pid:
      if (auto* sandbox = find(watch.id)) on_pid_exit(*sandbox);
      return;
  }
}

void Launcher::watch_helper(Fd pidfd) {
  int fd = pidfd.get();
  helpers_.emplace(fd, std::move(pidfd));
  if (auto watched = watch(fd, {.what = Watched::helper, .client = 0, .id = {}}); !watched) reap_helper(fd);
}

void Launcher::reap_helper(int fd) {
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(fd), &info, WEXITED);
  unwatch(fd);
  helpers_.erase(fd);
}

// Somebody may have removed the run directory, or the state directory with our scaffold, while sandboxes kept us alive. Without them
// no create succeeds, and nothing that is mounted brings them back; a new launcher makes them and adopts what lives. (A private one ends
// with all it has.) Looked for where it shows: when a create misses a file, and when a client comes.
bool Launcher::lost_home() {
  if (!homeless_ && (!is_held(options_.host.run_dir, lock_) || !host_.is_whole())) {
    log::error("our directories are gone; a new launcher is needed", {{"run_dir", options_.host.run_dir}});
    homeless_ = true;
  }
  return homeless_;
}

// A serve whose state directory is another one by now (the configuration changed, or a disk was mounted there) has its images there.
bool Launcher::works_elsewhere(const wire::HelloRequest& request) {
  if (options_.private_instance || (request.data_device == 0 && request.data_inode == 0)) return false;
  if (host_.works_in(request.data_device, request.data_inode)) return false;
  log::warn("serve has another data directory; a new launcher is needed", {{"data_dir", options_.host.data_dir}});
  homeless_ = true;
  return true;
}

void Launcher::accept_client() {
  Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!lost_home()) clients_.accept(std::move(socket), options_.allowed_uid);
}

void Launcher::on_client_gone(std::uint64_t client) {
  drop_captures_of(client);
  drop_staged_of(client);
  end_spares_of(client);
}

void Launcher::dispatch(std::uint64_t client, Received& message) {
  const auto* head = message.as<wire::Head>();
  if (head == nullptr || head->version != wire::kVersion) return clients_.drop(client);
  Pending to{client, head->seq};
  if (head->op != wire::Op::hello) retiring_ = false;  // whoever only greets (doctor) does not want us to stay
  auto of_sandbox = [&](auto act) {
    const auto* request = message.as<wire::SandboxRequest>();
    auto* sandbox = request == nullptr ? nullptr : find(request->id);
    if (sandbox == nullptr || sandbox->phase == Phase::dying) return clients_.reply_status(to, head->op, ENOENT);
    act(*sandbox);
  };
  switch (head->op) {
    case wire::Op::hello: {
      if (const auto* request = message.as<wire::HelloRequest>(); request != nullptr && works_elsewhere(*request))
        return clients_.drop(client);
      wire::HelloReply hello;
      hello.head.seq = to.seq;
      hello.pid = static_cast<std::uint32_t>(::getpid());
      hello.live = static_cast<std::uint32_t>(living());
      hello.cgroup_v2 = groups_.controllers_on_v2() ? 1 : 0;
      hello.landlock_abi = static_cast<std::uint32_t>(host_.facts().landlock_abi);
      return clients_.reply(to, &hello, sizeof hello);
    }
    case wire::Op::create: {
      static wire::CreateRequest request;
      if (!read_create(message, request)) return clients_.drop(client);
      return create(to, request, std::move(message.descriptor));
    }
    case wire::Op::claim:
      if (const auto* request = message.as<wire::ClaimRequest>()) return claim(to, *request, std::move(message.descriptor));
      return clients_.drop(client);
    case wire::Op::destroy:
      return of_sandbox([&](Sandbox& sandbox) {
        kill(sandbox, wire::Cause::destroyed);
        clients_.reply_status(to, wire::Op::destroy, 0);
      });
    case wire::Op::freeze: return of_sandbox([&](Sandbox& sandbox) { freeze(to, sandbox); });
    case wire::Op::thaw: return of_sandbox([&](Sandbox& sandbox) { thaw(to, sandbox); });
    case wire::Op::dial: return of_sandbox([&](Sandbox& sandbox) { dial(to, sandbox); });
    case wire::Op::usage: return of_sandbox([&](Sandbox& sandbox) { usage(to, sandbox); });
    case wire::Op::set_deadline:
      if (const auto* request = message.as<wire::DeadlineRequest>()) return set_deadline(to, *request);
      return clients_.drop(client);
    case wire::Op::stage_volume:
      if (const auto* request = message.as<wire::StageVolumeRequest>()) return stage_volume(to, *request, std::move(message.descriptor));
      return clients_.drop(client);
    case wire::Op::snapshot:
      if (const auto* request = message.as<wire::SnapshotRequest>()) return snapshot(to, *request, std::move(message.descriptor));
      return clients_.drop(client);
    case wire::Op::list:
      if (const auto* request = message.as<wire::ListRequest>()) return list(to, *request);
      return clients_.drop(client);
    case wire::Op::stop: {
      const auto* request = message.as<wire::StopRequest>();
      if (request == nullptr) return clients_.drop(client);
      if (!request->destroy_all) {
        retiring_ = true;
        bool idle = sandboxes_.empty();
        return clients_.reply_status(to, wire::Op::stop, idle ? 0 : EBUSY, idle ? "" : "sandboxes are running");
      }
      stopping_ = true;
      close_door();
      destroy_all(wire::Cause::destroyed);
      return clients_.reply_status(to, wire::Op::stop, 0);
    }
    case wire::Op::exited: break;
  }
  clients_.drop(client);
}

Launcher::Sandbox* Launcher::find(const std::string& id) {
  auto found = sandboxes_.find(id);
  return found == sandboxes_.end() ? nullptr : &found->second;
}

Launcher::Sandbox* Launcher::find(const wire::Key& key) {
  auto text = wire::text_of(key);
  return is_id_text(text) ? find(std::string(text)) : nullptr;
}

void Launcher::schedule(std::uint64_t boot_nanos, Chore chore, const std::string& id) {
  // Zero means never: a chore from before the boot is due at the first nanosecond.
  chores_.put(std::max<std::uint64_t>(1, boot_nanos), chore, id);
  arm_timer();
}

void Launcher::arm_timer() {
  auto at = chores_.next();
  if (at == armed_for_) return;
  armed_for_ = at;
  itimerspec next{};
  next.it_value.tv_sec = static_cast<time_t>(at / 1'000'000'000);
  next.it_value.tv_nsec = static_cast<long>(at % 1'000'000'000);
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &next, nullptr);
}

void Launcher::run_due_chores() {
  std::uint64_t expirations = 0;
  [[maybe_unused]] auto n = ::read(timer_.get(), &expirations, sizeof expirations);
  armed_for_ = 0;
  auto now = static_cast<std::uint64_t>(boot_now_nanos());
  while (auto due = chores_.take(now)) {
    if (due->chore == Chore::trim) trim_reserve();
    if (due->chore == Chore::stems) check_stems(now);
    auto* sandbox = find(due->id);
    if (sandbox == nullptr) continue;
    switch (due->chore) {
      case Chore::trim:
      case Chore::stems:
      case Chore::count_: break;
      case Chore::deadline:
        // A renewed sandbox has a later deadline by now; the old chore finds nothing to do.
        if (sandbox->phase != Phase::dying && sandbox->deadline != 0 && sandbox->deadline <= now) kill(*sandbox, wire::Cause::expired);
        break;
      case Chore::hasten: hasten(*sandbox, now); break;
      case Chore::retry_remove:
        if (sandbox->phase == Phase::dying && sandbox->pid == 0) finish(*sandbox);
        break;
      case Chore::check_frozen: check_frozen(*sandbox); break;
      case Chore::capture_deadline:
        // An earlier snapshot's deadline finds a later one that has still time.
        if (sandbox->capture && sandbox->capture->deadline <= now) {
          sandbox->capture->late = true;
          stop_capture(*sandbox);
        }
        break;
    }
  }
  arm_timer();
}

}  // namespace osb::launch
