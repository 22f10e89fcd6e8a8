// How sandboxes come and go. Whatever fails on the way in, they leave the same way as one that lived.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "confine/enter.h"
#include "confine/keeper.h"
#include "sys/kernel_file.h"
#include "sys/pipe.h"
#include "sys/raw.h"

namespace osb::confine {
namespace {

using wire::Step;

Error refuse(const char* what) { return Error(Errc::invalid_argument, what, EINVAL); }

// serve has checked and parses hostile input, so it is checked again.
Result<> check(const wire::CreateRequest& request) {
  const auto& l = request.limits;
  auto within = [](std::uint64_t value, std::uint64_t least, std::uint64_t most) { return value >= least && value <= most; };
  if (!within(l.memory_bytes, 1 << 20, 1ull << 40) || !within(l.pids, 2, 32'768)) return refuse("limits");
  if (!within(l.disk_bytes, 64 << 10, 1ull << 44) || !within(l.disk_inodes, 16, 1ull << 32)) return refuse("disk limits");
  if (request.policy.syscalls > SyscallProfile::permissive) return refuse("policy");
  if (request.policy.user != UserMode::user || request.policy.root != RootMode::read_only) return refuse("policy of this runtime");
  bool plain = request.layer_count == 1 && request.host_view == 1 && request.snapshot_layers == 0;
  if (!plain) return refuse("image of this runtime");
  if (request.volume_count != 0 || request.spare != 0) return refuse("volumes and spares");
  return Ok{};
}

Result<std::string> layer_of(const wire::CreateRequest& request, const Host& host) {
  std::string_view digest(request.layers[0].hex, sizeof request.layers[0].hex);
  if (digest.find_first_not_of("0123456789abcdef") != std::string_view::npos) return refuse("layer name");
  return host.layer_path(digest);
}

std::uint64_t nanos(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_usec) * 1000;
}

}  // namespace

void Keeper::create(const Pending& to, const wire::CreateRequest& request, Fd setup) {
  std::string id(request.id.text, ::strnlen(request.id.text, sizeof request.id.text));
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
  sandbox.limits = request.limits;
  sandbox.deadline = request.deadline_boot_nanos;
  auto begun = begin_create(sandbox, request, setup);
  if (begun) return arm_timer();
  sandbox.failed_errno = begun.error().sys();
  sandbox.failed_detail = begun.error().what();
  kill(sandbox, wire::Cause::destroyed);
}

Result<> Keeper::begin_create(Sandbox& sandbox, const wire::CreateRequest& request, const Fd& setup) {
  // `failed` names the step under way; it is cleared when execd reports that it is ready.
  auto step = [&](Step next) -> Result<> {
    sandbox.failed = next;
    if (options_.die_at == next) ::raise(SIGKILL);
    if (options_.fail_at == next) return Error::from_errno("injected", ECANCELED);
    return Ok{};
  };
  CHECK_OK(step(Step::validate));
  CHECK_OK(check(request));
  Plan plan;
  auto& base = plan.base;
  base.host = host_.facts();
  base.filter = host_.filter(request.policy.syscalls);
  base.policy = request.policy;
  base.limits = request.limits;
  base.hostname = "sbx-" + sandbox.id.substr(0, 8);
  base.machine_id = random_hex(16);
  base.setup = setup.get();
  base.started = host_.execd();
  base.fail_at = options_.fail_at;
  base.die_at = options_.die_at;
  plan.workspace = host_.workspace();
  plan.workspace_fd = host_.workspace_fd();
  TRY(auto layer, layer_of(request, host_));
  base.layer_paths = {layer};
  CHECK_OK(open_oom_counter(sandbox));
  TRY(auto counter, sys::open_at(AT_FDCWD, cat("/proc/self/fd/", sandbox.oom_counter.get()).c_str(), O_RDONLY));
  base.oom_counter = counter.get();
  CHECK_OK(step(Step::listener));
  TRY(auto listener, launch::listen_for_execd(options_.host.run_dir + "/sandboxes", sandbox.id, 0));
  base.listener = listener.get();
  CHECK_OK(step(Step::clone));
  return make_process(sandbox, plan);
}

Result<> Keeper::make_process(Sandbox& sandbox, Plan& plan) {
  TRY(auto report, sys::make_pipe());
  TRY(auto go, sys::make_pipe());
  plan.base.report = report.write.get();
  plan.go = go.read.get();
  int pidfd = -1;
  int child = divide(pidfd);
  if (child < 0) return Error::from_errno("clone", errno);
  if (child == 0) {
    go.write.reset();  // the keeper's copy is the last one: its death ends the wait
    enter(plan);
  }
  sandbox.pid = child;
  sandbox.pidfd = Fd(pidfd);
  sandbox.report = std::move(report.read);
  CHECK_OK(watch(sandbox.pidfd.get(), {Watched::pid, 0, sandbox.id}));
  CHECK_OK(watch(sandbox.report.get(), {Watched::report, 0, sandbox.id}));
  sandbox.failed = Step::user_namespace;
  CHECK_OK(map_own_ids(child));
  if (::write(go.write.get(), "g", 1) != 1) return Error::from_errno("start", errno);
  return Ok{};
}

// What the new process says of itself; true when execd is ready.
bool Keeper::take_report(Sandbox& sandbox) {
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

void Keeper::on_report(Sandbox& sandbox) {
  bool ready = take_report(sandbox);
  if (sandbox.phase != Phase::making) return;
  if (!ready) return kill(sandbox, wire::Cause::destroyed);
  sandbox.phase = Phase::live;
  answer_create(sandbox);
  arm_timer();
}

void Keeper::answer_create(Sandbox& sandbox) {
  if (!sandbox.create) return;
  wire::CreateReply answer;
  answer.head.seq = sandbox.create->seq;
  answer.failed = sandbox.failed;
  answer.sys = sandbox.failed_errno;
  answer.pid = sandbox.pid;
  answer.id_base = ::geteuid();
  sandbox.failed_detail.copy(answer.detail, sizeof answer.detail - 1);
  Pending to = *std::exchange(sandbox.create, std::nullopt);
  if (answer.failed != Step::none)
    log::warn("create failed", {{"id", sandbox.id}, {"step", wire::name_of(answer.failed)}, {"error", sandbox.failed_detail}});
  clients_.reply(to, &answer, sizeof answer);
}

// The end of pid 1 is the end of every process in its namespace.
void Keeper::kill(Sandbox& sandbox, wire::Cause cause) {
  if (sandbox.phase == Phase::dying) return;
  sandbox.phase = Phase::dying;
  sandbox.cause = cause;
  ::unlink(socket_path(sandbox.id).c_str());  // nobody new can reach it
  if (sandbox.pid == 0) return finish(sandbox);
  if (sys::raw::pidfd_send_signal(sandbox.pidfd.get(), SIGKILL) != 0)
    log::error("kill failed", {{"id", sandbox.id}, {"error", std::strerror(errno)}});
}

void Keeper::destroy_all() {
  std::vector<std::string> ids;
  for (const auto& [id, sandbox] : sandboxes_) ids.push_back(id);
  for (const auto& id : ids)
    if (auto* sandbox = find(id)) kill(*sandbox, wire::Cause::destroyed);
}

// pid 1 of a pid namespace is reaped only after every other process in it is dead.
void Keeper::on_pid_exit(Sandbox& sandbox) {
  siginfo_t info{};
  rusage used{};
  bool ours = sys::raw::wait_pidfd(sandbox.pidfd.get(), info, used) == 0;
  unwatch(sandbox.pidfd.get());
  sandbox.pidfd.reset();
  sandbox.pid = 0;
  sandbox.status = ours ? info.si_status : 0;
  sandbox.cpu_nanos = nanos(used.ru_utime) + nanos(used.ru_stime);
  sandbox.peak_bytes = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
  if (sandbox.report) take_report(sandbox);  // a failed step speaks through the pipe before its process ends
  if (sandbox.create && sandbox.failed == Step::none) {
    sandbox.failed = Step::exec;
    sandbox.failed_errno = EPIPE;
    sandbox.failed_detail = "execd ended at once";
  }
  if (sandbox.phase != Phase::dying) {
    sandbox.phase = Phase::dying;
    sandbox.cause = !ours ? wire::Cause::unknown : info.si_code == CLD_EXITED ? wire::Cause::exited : wire::Cause::signalled;
    ::unlink(socket_path(sandbox.id).c_str());
  }
  finish(sandbox);
}

void Keeper::finish(Sandbox& sandbox) {
  bool never_lived = sandbox.create.has_value();
  if (never_lived) answer_create(sandbox);
  wire::ExitedEvent event;
  sandbox.id.copy(event.id.text, sizeof event.id.text);
  event.cause = sandbox.cause;
  event.status = sandbox.status;
  event.cpu_nanos = sandbox.cpu_nanos;
  event.memory_peak_bytes = sandbox.peak_bytes;
  event.oom_kills = sandbox.oom_kills;
  sandboxes_.erase(sandboxes_.find(std::string(sandbox.id)));
  if (!never_lived) clients_.broadcast(&event, sizeof event);
  arm_timer();
}

}  // namespace osb::confine
