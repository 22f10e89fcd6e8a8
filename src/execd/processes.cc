#include "execd/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "sys/pipe.h"

namespace osb::execd {
namespace {

constexpr int kReapAtOnce = 1024;
constexpr rlim_t kOpenFiles = 4096;

void make_non_blocking(const Fd& fd) { ::fcntl(fd.get(), F_SETFL, O_NONBLOCK); }

// The line "oom_kill N" of memory.events and of memory.oom_control.
std::optional<std::uint64_t> count_in(std::string_view text) {
  for (std::string_view line : split(text, '\n'))
    if (line.starts_with("oom_kill ")) return parse_int<std::uint64_t>(line.substr(9));
  return std::nullopt;
}

// Pipes of a few hundred commands and their clients do not fit into the usual 1024. Returns the limit before.
std::optional<rlimit> raise_open_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return std::nullopt;
  rlimit before = files;
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, kOpenFiles);
  bool raised = files.rlim_cur > before.rlim_cur && ::setrlimit(RLIMIT_NOFILE, &files) == 0;
  return raised ? std::optional(before) : std::nullopt;
}

Error describe_failure(const ChildStart& start, const StartRequest& request) {
  auto error = [&](Errc kind, std::string what) { return Error::from_errno(std::move(what), start.sys, kind); };
  bool no_resources = start.sys == EAGAIN || start.sys == ENOMEM;
  if (start.failed == ChildStep::cwd && start.sys == ELOOP)
    return Error(Errc::invalid_argument, cat("cwd ", json_string(request.cwd), " leads through links that are not followed"), ELOOP)
        .at("cwd");
  if (start.failed == ChildStep::cwd) return error(Errc::invalid_argument, cat("cwd ", json_string(request.cwd))).at("cwd");
  if (start.failed == ChildStep::uid || start.failed == ChildStep::gid || start.failed == ChildStep::groups)
    return error(start.sys == EPERM ? Errc::permission_denied : Errc::invalid_argument, "run as this user").at("uid");
  if (no_resources) return error(Errc::exhausted, "start a process");
  if (start.failed != ChildStep::exec) return error(Errc::internal, cat("start a process: ", name_of(start.failed)));
  std::string program = json_string(request.attempts.back().argv.front());
  if (start.sys == E2BIG) return error(Errc::invalid_argument, "arguments and environment together").at("envs");
  bool absent = start.sys == ENOENT || start.sys == ENOTDIR;
  return error(absent ? Errc::not_found : Errc::permission_denied, std::move(program)).at("program");
}

}  // namespace

struct Processes::Pipes {
  Pipe in;
  Pipe out;
  Pipe err;
  TerminalEnds terminal;
};

// Nothing is made ahead of time where the count of kills is shared with processes that execd does not know of, or the kernel's
// allowance of pipes with other sandboxes.
Processes::Processes(Executor executor, const Setup& setup, Fd oom_counter)
    : executor_(executor),
      native_(setup.native),
      keep_caps_(setup.keep_caps),
      oom_counter_(std::move(oom_counter)),
      null_(::open("/dev/null", O_RDWR | O_CLOEXEC)),
      open_files_(raise_open_files()),
      leads_session_(setup.native && ::getsid(0) == ::getpid()),
      groupless_(::getgroups(0, nullptr) == 0),
      may_prepare_(setup.native && !setup.one_user && ::getpid() == 1),
      alone_(may_prepare_) {}

std::optional<std::uint64_t> Processes::oom_kills() const {
  char text[512];
  ssize_t n = oom_counter_ ? ::pread(oom_counter_.get(), text, sizeof text, 0) : -1;
  if (n <= 0) return std::nullopt;
  return count_in({text, static_cast<std::size_t>(n)});
}

namespace {

// Only execd's end is non-blocking: a program that finds its own like that would misbehave.
Result<Pipe> make_output() {
  TRY(Pipe pipe, sys::make_pipe());
  make_non_blocking(pipe.read);
  return pipe;
}

Result<Pipe> take_output(Pipe& spare) { return spare.read ? Result<Pipe>(std::move(spare)) : make_output(); }

}  // namespace

void Processes::prepare_next() {
  if (!alone_ || !expects_more()) return;
  [[maybe_unused]] auto first_look = boot_now_nanos();  // maps the pages of the clocks
  spare_kills_ = oom_kills();
  for (Pipe* spare : {&spare_out_, &spare_err_}) {
    if (spare->read) continue;
    auto made = make_output();
    if (made) *spare = *std::move(made);
  }
}

Result<> Processes::open_pipes(const StartRequest& request, Pipes& pipes) {
  if (request.inherit_stdio || request.input >= 0) return Ok{};
  if (request.terminal) return open_terminal_for(request, pipes);
  if (request.with_stdin) {
    TRY(pipes.in, sys::make_pipe());
    make_non_blocking(pipes.in.write);
  }
  TRY(pipes.out, take_output(spare_out_));
  if (request.merge_output) return Ok{};
  TRY(pipes.err, take_output(spare_err_));
  return Ok{};
}

// Both directions of the master are separate descriptors, so that each can be waited for and closed on its own.
Result<> Processes::open_terminal_for(const StartRequest& request, Pipes& pipes) const {
  TRY(pipes.terminal, open_terminal(*request.terminal, request.who ? &request.who->uid : nullptr));
  pipes.in.write.reset(::fcntl(pipes.terminal.master.get(), F_DUPFD_CLOEXEC, 0));
  if (!pipes.in.write) return Error::from_errno("open a terminal", errno, Errc::exhausted);
  pipes.out.read = std::move(pipes.terminal.master);
  return Ok{};
}

ChildPlan Processes::plan_for(const StartRequest& request, const Pipes& pipes) {
  ChildPlan plan;
  plan.attempts = request.attempts;
  plan.env = &request.env;
  plan.base_env = request.base_env;
  plan.cwd = request.cwd.c_str();
  plan.cwd_may_be_missing = request.cwd_may_be_missing;
  plan.tag = request.tagged ? tags_.next() : 0;
  plan.open_files = open_files_;
  plan.keeps_session = leads_session_ && plan.tag != 0 && !request.terminal && request.input < 0;
  plan.groupless = groupless_;
  if (request.who) plan.who = &*request.who;
  if (native_) plan.capabilities = keep_caps_ && request.who && request.who->uid == 0 ? Capabilities::root_mode : Capabilities::none;
  if (request.inherit_stdio) return plan;
  if (request.input >= 0) {
    plan.in = request.input;
    plan.out = plan.err = null_.get();
    return plan;
  }
  if (request.terminal) {
    plan.in = plan.out = plan.err = pipes.terminal.slave.get();
    plan.terminal = true;
    return plan;
  }
  plan.in = request.with_stdin ? pipes.in.read.get() : null_.get();
  plan.out = pipes.out.write.get();
  plan.err = request.merge_output ? plan.out : pipes.err.write.get();
  return plan;
}

Result<std::shared_ptr<Process>> Processes::start(const StartRequest& request) {
  Pipes pipes;
  CHECK_OK(open_pipes(request, pipes));
  ChildPlan plan = plan_for(request, pipes);
  auto kills_before = spare_kills_ ? std::exchange(spare_kills_, std::nullopt) : oom_kills();
  auto started_nanos = boot_now_nanos();
  ChildStart child = start_child(plan);
  alone_ = false;
  ++started_;
  if (child.pid < 0) return describe_failure(child, request);
  auto process = std::make_shared<Process>(executor_, *this, TreeRoot{child.pid, plan.tag}, started_nanos);
  process->oom_kills_before_ = kills_before;
  running_.emplace(child.pid, process);
  if (!request.answer_first) {
    pipes.out.write.reset();
    pipes.err.write.reset();
  }
  if (pipes.out.read) process->out_.open(std::move(pipes.out), request.terminal.has_value());
  if (pipes.err.read) process->err_.open(std::move(pipes.err));
  if (pipes.in.write) process->input_.emplace(executor_, pipes.in.write.release());
  process->terminal_ = std::move(pipes.terminal.slave);
  if (request.timeout) process->limit(*request.timeout);
  return process;
}

void Processes::hear_of(const siginfo_t& info) {
  auto found = running_.find(info.si_pid);
  if (found == running_.end()) return;  // heard of already, an orphan, or a child that never became a program
  auto process = std::move(found->second);
  running_.erase(found);
  process->ended(info);
}

bool Processes::hear_first() {
  siginfo_t info{};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return false;
  hear_of(info);
  return true;
}

bool Processes::reap() {
  for (int i = 0; i < kReapAtOnce; ++i) {
    siginfo_t info{};
    bool nobody = ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0 && errno == ECHILD;
    if (info.si_pid == 0) {
      alone_ = may_prepare_ && nobody;
      return false;
    }
    hear_of(info);
  }
  return true;
}

}  // namespace osb::execd
