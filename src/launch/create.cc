// The parent's half of a create: every host object in order, each recorded or derivable before it is made. The other
// half is enter(), inside the new process. Whatever fails, teardown undoes the same way as for a sandbox that lived.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "launch/disk.h"
#include "launch/launcher.h"
#include "sys/kernel_file.h"
#include "sys/pipe.h"
#include "sys/raw.h"

namespace osb::launch {
namespace {

using wire::Step;

// A host may allow us few descriptors, and a thousand sandboxes at once are seldom a thousand that come and go.
constexpr std::size_t kHeldBerths = 256;
constexpr std::uint64_t kDivisionDeadline = 5'000'000'000;

// The launcher checks again what serve has checked: serve parses hostile input and is not trusted with the host.
Result<std::vector<std::string>> layer_paths_of(const wire::CreateRequest& request, const Host& host) {
  std::vector<std::string> paths;
  for (std::uint32_t i = 0; i < request.layer_count; ++i) {
    std::string_view digest(request.layers[i].hex, sizeof request.layers[i].hex);
    if (digest.find_first_not_of("0123456789abcdef") != std::string_view::npos) return Error(Errc::invalid_argument, "layer name");
    paths.push_back(host.layer_path(digest));
  }
  return paths;
}

Result<> check(const wire::CreateRequest& request) {
  const auto& l = request.limits;
  auto refuse = [](const char* what) { return Error(Errc::invalid_argument, what, EINVAL); };
  auto within = [](std::uint64_t value, std::uint64_t least, std::uint64_t most) { return value >= least && value <= most; };
  if (!within(request.layer_count, 1, wire::kMaxLayers) || request.snapshot_layers >= request.layer_count) return refuse("layer count");
  if (!within(l.memory_bytes, 1 << 20, 1ull << 40) || !within(l.cpu_millis, 10, 1'024'000) || !within(l.pids, 2, 32'768))
    return refuse("limits");
  if (!within(l.disk_bytes, 64 << 10, 1ull << 44) || !within(l.disk_inodes, 16, 1ull << 32)) return refuse("disk limits");
  if (!within(l.io_bytes_per_second, 1, 1ull << 40) || !within(l.io_operations_per_second, 1, 100'000'000)) return refuse("io limits");
  if (request.policy.user > UserMode::root || request.policy.syscalls > SyscallProfile::permissive ||
      request.policy.root > RootMode::writable)
    return refuse("policy");
  return Ok{};
}

// Disks and volumes come from helpers that a create starts; what is written into a root is nobody else's.
SproutKind kind_of(const enter::EnterPlan& plan, std::size_t volumes) {
  bool plain = can_be_held(plan) && volumes == 0 && plan.limits.disk_bytes <= kLargestMemoryStore;
  return plain ? SproutKind{plan.shape, plan.policy, plan.limits} : SproutKind{};
}

}  // namespace

void Launcher::create(const Pending& to, const wire::CreateRequest& request, Fd setup) {
  std::string id(request.id.text, ::strnlen(request.id.text, sizeof request.id.text));
  auto volumes = staged_.extract(id);  // whatever becomes of the create, they are used up
  wire::CreateReply refused;
  refused.head.seq = to.seq;
  refused.failed = Step::validate;
  refused.sys = EINVAL;
  if (!is_id_text(id) || !setup || stopping_) return clients_.reply(to, &refused, sizeof refused);
  auto [at, fresh] = sandboxes_.try_emplace(id);
  refused.sys = EEXIST;
  if (!fresh) return clients_.reply(to, &refused, sizeof refused);
  Sandbox& sandbox = at->second;
  sandbox.id = id;
  sandbox.create = to;
  sandbox.deadline = request.deadline_boot_nanos;
  sandbox.spare_of = request.spare != 0 ? to.client : 0;
  // Root of its own namespaces, or with every harmless system call, a sandbox could leave marks that nobody counts.
  sandbox.spoils = request.policy.user == UserMode::root || request.policy.syscalls == SyscallProfile::permissive;
  sandbox.number = ++creates_;
  most_at_once_ = std::max(most_at_once_, sandboxes_.size());
  last_create_ = static_cast<std::uint64_t>(boot_now_nanos());
  std::vector<StagedVolume> none;
  auto begun = begin_create(sandbox, request, setup, volumes.empty() ? none : volumes.mapped());
  if (begun) return;
  sandbox.failed_errno = begun.error().sys();
  sandbox.failed_detail = begun.error().what();
  kill(sandbox, wire::Cause::destroyed);
}

Result<> Launcher::record(const Sandbox& sandbox) {
  return ledger_.write({.id = sandbox.id,
                        .range = sandbox.berth.range,
                        .deadline_boot_nanos = sandbox.deadline,
                        .boot_id = boot_id_,
                        .spare = sandbox.spare_of != 0,
                        .cpu_nanos_before = sandbox.berth.group.cpu_nanos_before});
}

// Where the new process belongs, whatever it becomes.
void Launcher::plan_berth(enter::EnterPlan& plan, const Berth& berth) {
  plan.first_id = berth.first_id();
  plan.network_namespace = berth.network.ns.get();
  plan.cgroup = berth.group.v2.get();
  for (const auto& tasks : berth.group.tasks) plan.cgroup_tasks.push_back(tasks.get());
}

Result<> Launcher::begin_create(Sandbox& sandbox, const wire::CreateRequest& request, const Fd& setup, std::vector<StagedVolume>& volumes) {
  // `failed` names the step under way; it is cleared when execd reports that it is ready.
  auto step = [&](Step next) -> Result<> {
    sandbox.failed = next;
    if (options_.die_at == next) ::raise(SIGKILL);
    if (options_.fail_at == next) return Error::from_errno("injected", ECANCELED);
    return Ok{};
  };
  CHECK_OK(step(Step::validate));
  CHECK_OK(check(request));
  if (volumes.size() != request.volume_count) return Error(Errc::invalid_argument, "volumes", EINVAL);
  enter::EnterPlan plan;
  plan.host = host_.facts();
  plan.fail_at = options_.fail_at;
  plan.die_at = options_.die_at;
  plan.filter = host_.filter(request.policy.syscalls);
  plan.policy = request.policy;
  plan.limits = request.limits;
  plan.host_view = request.host_view != 0;
  plan.snapshot_layers = request.snapshot_layers;
  plan.hostname = "sbx-" + sandbox.id.substr(0, 8);
  plan.machine_id = random_hex(16);
  plan.setup = setup.get();
  TRY(plan.layer_paths, layer_paths_of(request, host_));
  TRY(plan.shape, host_.shape(request.limits));

  CHECK_OK(step(Step::user_namespace));
  auto kind = kind_of(plan, volumes.size());
  TRY(sandbox.berth, berths_.take(kind));
  Berth& berth = sandbox.berth;
  sandbox.has_range = true;
  if (!kind.shape.empty()) last_kind_ = kind;
  barren_ = false;
  plan.user_namespace = berth.user_namespace.get();

  CHECK_OK(step(Step::ledger));
  CHECK_OK(record(sandbox));
  sandbox.recorded = true;

  CHECK_OK(step(Step::network_namespace));
  CHECK_OK(berths_.complete_network(berth));

  CHECK_OK(step(Step::cgroup));
  CHECK_OK(berths_.complete_group(berth));
  CHECK_OK(step(Step::cgroup_limits));
  CHECK_OK(groups_.limit(berth.group, request.limits));
  plan_berth(plan, berth);
  plan.oom_counter = berth.group.oom_counter.get();

  CHECK_OK(step(Step::disk));
  DiskHelper disk;
  if (request.limits.disk_bytes > kLargestMemoryStore) {
    TRY(auto empty, disk_template(host_.disks_path(), request.limits.disk_bytes, request.limits.disk_inodes));
    TRY(disk, start_disk_helper(empty, host_.disks_path(), [this] { return static_cast<bool>(groups_.leave_device_rules()); }));
    plan.disk_socket = disk.socket.get();
    watch_helper(std::move(disk.pidfd));
  }

  CHECK_OK(step(Step::volume_helpers));
  VolumeParts volume_parts;
  CHECK_OK(plan_volumes(volumes, plan, volume_parts));

  CHECK_OK(step(Step::held_root));
  if (host_.holds_roots() && berths_.uses_again() && can_be_held(plan)) {
    if (!berth.root.serves(plan, last_create_)) {
      TRY(berth.root, build_held_root(plan, host_.work(), last_create_));
    }
    plan.root = berth.root.tree.get();
  }

  CHECK_OK(step(Step::listener));
  TRY(auto listener, listen_for_execd(options_.host.run_dir + "/sandboxes", sandbox.id, options_.allowed_uid));
  plan.listener = listener.get();
  TRY(auto report, sys::make_pipe());
  sandbox.report = std::move(report.read);
  plan.report = report.write.get();
  Fd set_up_end;
  if (request.spare) {
    TRY(set_up_end, open_set_up_channel(sandbox, setup));
    plan.setup = set_up_end.get();
  }
  Pipe started;  // nobody writes to it; the new process closes the last copy when it is a sandbox
  if (request.answer_at_exec || request.spare) {
    TRY(started, sys::make_pipe());
    sandbox.started = std::move(started.read);
    plan.started = started.write.get();
  }

  CHECK_OK(step(Step::clone));
  return become_sandbox(sandbox, plan, kind) ? Ok{} : divide(sandbox, plan);
}

// What was divided ahead of time goes on at once. False: there was none of use, and none is left.
bool Launcher::become_sandbox(Sandbox& sandbox, const enter::EnterPlan& plan, const SproutKind& kind) {
  auto sprout = std::move(sandbox.berth.sprout);
  if (!sprout.serves(kind)) return false;
  auto used = sprout.use(plan);
  if (!used.pidfd) return false;
  sandbox.program = std::move(used.program);
  if (auto taken = take_child(sandbox, used.pid, std::move(used.pidfd)); !taken) {
    sandbox.failed_errno = taken.error().sys();
    sandbox.failed_detail = taken.error().what();
    kill(sandbox, wire::Cause::destroyed);
  }
  return true;
}

// The rest follows when the stem has answered; meanwhile the loop serves others.
Result<> Launcher::divide(Sandbox& sandbox, const enter::EnterPlan& plan) {
  CHECK_OK(ask_stem(plan, sandbox.id));
  sandbox.dividing = true;
  return Ok{};
}

Result<> Launcher::ask_stem(const enter::EnterPlan& plan, const std::string& id) {
  auto now = static_cast<std::uint64_t>(boot_now_nanos());
  auto& stem = *std::ranges::min_element(stems_, {}, &Stem::under_way);
  int before = stem.fd();
  if (stem.is_crowded()) stem.freshen();  // also where there is no calm moment
  auto asked = stem.divide(plan, id, now);
  CHECK_OK(watch_stem(stem, before));
  if (stem.has_lost()) hear_stems();  // no descriptor is left that could tell of them
  CHECK_OK(asked);
  if (!std::exchange(stems_due_, true)) schedule(now + kDivisionDeadline, Chore::stems, {});
  return Ok{};
}

// After anything that may have ended a stem or started another, whose descriptor was `before`. A closed one is watched no more.
Result<> Launcher::watch_stem(Stem& stem, int before) {
  if (before >= 0 && stem.fd() != before) watches_.erase(before);
  if (!stem.take_fresh()) return Ok{};
  return watch(stem.fd(), {.what = Watched::stem, .client = 0, .id = {}});
}

void Launcher::freshen_stems() {
  for (auto& stem : stems_) {
    int before = stem.fd();
    stem.freshen();
    if (auto watched = watch_stem(stem, before); !watched) log::error("stem not watched", {{"error", watched.error().what()}});
  }
}

void Launcher::hear_stems() {
  std::vector<Stem::Answer> answers;
  for (auto& stem : stems_) {
    int before = stem.fd();
    while (auto answer = stem.next_answer()) answers.push_back(*std::move(answer));
    if (stem.has_died()) stem.stop();
    (void)watch_stem(stem, before);
  }
  for (const auto& answer : answers)
    if (answer.id.empty())
      on_sprouted(answer);
    else if (auto* sandbox = find(answer.id))
      on_divided(*sandbox, answer);
}

void Launcher::on_divided(Sandbox& sandbox, const Stem::Answer& answer) {
  sandbox.dividing = false;
  sandbox.program = answer.program;
  auto taken = answer.child < 0 ? Result<>(Error::from_errno("divide", -answer.child))
                                : take_child(sandbox, answer.child, Fd(sys::raw::pidfd_open(answer.child)));
  if (sandbox.pid == 0) abandon_division(sandbox);
  bool dying = sandbox.phase == Phase::dying;
  if (taken && !dying) return;
  if (!taken) {
    sandbox.failed_errno = taken.error().sys();
    sandbox.failed_detail = taken.error().what();
  }
  // Killed while it was being divided: what was put off then is done now.
  if (dying) sandbox.phase = Phase::making;
  kill(sandbox, dying ? sandbox.cause : wire::Cause::destroyed);
}

Result<> Launcher::take_child(Sandbox& sandbox, std::int32_t child, Fd pidfd) {
  if (!pidfd) return Error::from_errno("pidfd_open", errno);
  sandbox.pidfd = std::move(pidfd);
  sandbox.pid = child;
  hold_berth(sandbox);
  CHECK_OK(watch(sandbox.pidfd.get(), {.what = Watched::pid, .client = 0, .id = sandbox.id}));
  CHECK_OK(watch(sandbox.report.get(), {.what = Watched::report, .client = 0, .id = sandbox.id}));
  if (sandbox.started) CHECK_OK(watch(sandbox.started.get(), {.what = Watched::started, .client = 0, .id = sandbox.id}));
  if (sandbox.deadline != 0) schedule(sandbox.deadline, Chore::deadline, sandbox.id);
  return Ok{};
}

// The youngest keep the descriptors of their berths, and so leave them to others: whoever has lived long is seldom the next to go.
void Launcher::hold_berth(const Sandbox& sandbox) {
  held_.emplace(sandbox.number, sandbox.id);
  if (held_.size() <= kHeldBerths) return;
  auto oldest = held_.begin();
  if (auto* settled = find(oldest->second)) settled->berth.let_go();
  held_.erase(oldest);
}

// A stem that is silent for so long is given up, and with it all that it works on.
void Launcher::check_stems(std::uint64_t now) {
  stems_due_ = false;
  bool busy = false;
  for (auto& stem : stems_) {
    int before = stem.fd();
    if (stem.is_silent_since(now - kDivisionDeadline)) stem.stop();
    (void)watch_stem(stem, before);
    busy = busy || stem.is_busy();
  }
  hear_stems();
  if (busy && !std::exchange(stems_due_, true)) schedule(now + kDivisionDeadline, Chore::stems, {});
}

// Whoever is in the group of a sandbox that has no first process was divided by a stem that did not live to tell.
void Launcher::abandon_division(Sandbox& sandbox) {
  sandbox.spoils = true;
  end_all_in(sandbox.berth.group.name);
}

void Launcher::end_all_in(const std::string& group) {
  for (auto pid : groups_.pids(group))
    if (Fd pidfd(sys::raw::pidfd_open(pid)); pidfd) watch_helper(std::move(pidfd));
  (void)groups_.kill(group);
}

// The pipe also ends when the process dies on the way; then its report or its pidfd has something to say.
void Launcher::on_started(Sandbox& sandbox) {
  unwatch(sandbox.started.get());
  sandbox.started.reset();
  if (sandbox.phase != Phase::making) return;
  pollfd silent[] = {{sandbox.report.get(), POLLIN, 0}, {sandbox.pidfd.get(), POLLIN, 0}};
  if (::poll(silent, 2, 0) != 0) return;
  sandbox.phase = Phase::live;
  sandbox.failed = Step::none;
  answer_create(sandbox);
}

// What the new process says of itself; true when execd is ready. Only notes it down: the caller decides what follows.
bool Launcher::take_report(Sandbox& sandbox) {
  wire::ChildReport report;
  if (::read(sandbox.report.get(), &report, sizeof report) != sizeof report) report = {Step::exec, EPIPE};  // it died without a word
  unwatch(sandbox.report.get());
  sandbox.report.reset();
  if (sandbox.phase == Phase::making) {
    sandbox.failed = report.step;
    sandbox.failed_errno = report.sys;
    if (report.step != Step::none) sandbox.failed_detail = cat(wire::name_of(report.step), ": ", std::strerror(report.sys));
  }
  return report.step == Step::none;
}

void Launcher::on_report(Sandbox& sandbox) {
  bool ready = take_report(sandbox);
  switch (sandbox.phase) {
    case Phase::dying: return;
    case Phase::live:  // answered already; execd that fails after that ends the sandbox
      if (!ready) kill(sandbox, wire::Cause::unknown);
      return;
    case Phase::making:
      if (!ready) return kill(sandbox, wire::Cause::destroyed);
      sandbox.phase = Phase::live;
      return answer_create(sandbox);
  }
}

void Launcher::answer_create(Sandbox& sandbox) {
  if (!sandbox.create) return;
  wire::CreateReply answer;
  answer.head.seq = sandbox.create->seq;
  answer.failed = sandbox.failed;
  answer.sys = sandbox.failed_errno;
  answer.pid = sandbox.pid;
  answer.id_base = sandbox.berth.first_id();
  sandbox.failed_detail.copy(answer.detail, sizeof answer.detail - 1);
  Pending to = *std::exchange(sandbox.create, std::nullopt);
  if (answer.sys == ENOENT && answer.failed != Step::none && lost_home()) return;  // whoever asks again finds the next launcher
  if (answer.failed != Step::none)
    log::warn("create failed", {{"id", sandbox.id}, {"step", wire::name_of(answer.failed)}, {"error", sandbox.failed_detail}});
  clients_.reply(to, &answer, sizeof answer);
}

}  // namespace osb::launch
