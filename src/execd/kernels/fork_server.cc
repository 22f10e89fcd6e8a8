#include "execd/kernels/fork_server.h"

#include <signal.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "base/id.h"
#include "base/text.h"
#include "execd/run_request.h"
#include "execd/sandbox.h"
#include "execd/small_file.h"

namespace osb::execd {
namespace {

constexpr std::string_view kScript =
#include "execd/kernels/fork_server.inc"
    ;
constexpr std::size_t kMaxLine = 4096;

// The script comes as the first line of the input, so that it does not fill the process list.
constexpr const char* kLoader = "exec(eval(open(0,'rb',0,closefd=False).readline()))";

std::string describe(const ForkServer::Wish& wish, const Forked& child, std::string_view id) {
  std::string out = cat(R"({"id":")", id, R"(","tag":)", child.tag, R"(,"ip":)", json_string(wish.ip), R"(,"key":)", json_string(wish.key),
                        R"(,"cwd":)", json_string(wish.cwd), R"(,"env":{)");
  bool first = true;
  for (const auto& [name, value] : wish.env) {
    out += cat(first ? "" : ",", json_string(name), ":", json_string(value));
    first = false;
  }
  return out += "}}\n";
}

}  // namespace

Result<> ForkServer::start(const Wish& wish) {
  RunRequest request;
  request.argv = {wish.program, "-c", kLoader};
  TRY(StartRequest start, prepare(sandbox_.setup, std::move(request)));
  start.with_stdin = true;
  start.merge_output = true;
  start.tagged = false;  // each kernel gets its own tag, which cannot be above its parent's
  TRY(server_, sandbox_.processes.start(start));
  program_ = wish.program;
  problem_.clear();
  outbox_ = json_string(kScript) + "\n";
  sandbox_.tasks.spawn("kernels", listen(server_));
  return Ok{};
}

void ForkServer::ask(std::string line) {
  outbox_ += line;
  if (writing_) return;
  writing_ = true;
  sandbox_.tasks.spawn("kernel requests", write_out(server_));
}

Task<void> ForkServer::write_out(std::shared_ptr<Process> server) {
  while (!outbox_.empty()) {
    std::string bytes = std::exchange(outbox_, {});
    auto [error, count] = co_await asio::async_write(*server->input(), asio::buffer(bytes), nothrow);
    if (error) break;  // listen() notices the end
  }
  writing_ = false;
}

Task<void> ForkServer::listen(std::shared_ptr<Process> server) {
  std::string said;
  while (server->out().is_open()) {
    std::size_t n = server->out().read(scratch());
    said.append(scratch().data(), n);
    for (auto end = said.find('\n'); end != std::string::npos; end = said.find('\n')) {
      if (server == server_) heard(std::string_view(said).substr(0, end));
      said.erase(0, end + 1);
    }
    if (said.size() > kMaxLine) server->signal_group(SIGKILL);
    if (n == 0 && server->out().is_open()) co_await server->activity(Process::Clock::time_point::max());
  }
  // Its pipe is closed by everybody: it is gone, or as good as gone. Only the server itself is ended: a process that dies
  // closes its pipe while its kernels are still its children, and they are to go on.
  bool ended = co_await server->wait_end(std::chrono::seconds(1));
  if (!ended) server->signal_group(SIGKILL);
  if (server == server_) lost(*server);
}

// Kernels that are up go on without their server; those on their way do not.
void ForkServer::lost(const Process&) {
  server_.reset();
  outbox_.clear();
  for (auto& [id, child] : children_)
    if (!child->listens && !child->problem)
      child->problem = Error(Errc::unavailable, problem_.empty() ? std::string("the fork server ended") : problem_);
  children_.clear();
  changed_.ring();
}

bool ForkServer::is_child(pid_t pid) const {
  auto stat = read_small_file(cat("/proc/", pid, "/stat"), 1024);
  auto close = stat ? stat->rfind(')') : std::string::npos;
  if (close == std::string::npos) return false;
  auto fields = split(std::string_view(*stat).substr(close + 1), ' ');  // [1] is the state, [2] the parent
  return fields.size() > 2 && parse_int<pid_t>(fields[2]) == server_->pid();
}

void ForkServer::heard(std::string_view line) {
  auto words = split(line, ' ');
  if (words.size() < 3) return;
  std::string_view kind = words[0];
  std::string_view rest = line.substr(kind.size() + words[1].size() + 2);
  if (kind == "X" && words[1] == "-") problem_ = cat("python cannot run kernels: ", rest, "; install ipykernel in this image");
  auto found = children_.find(words[1]);
  if (found == children_.end()) return;
  auto child = found->second;
  if (kind == "F" || kind == "R") {
    auto pid = parse_int<pid_t>(rest);
    if (pid && *pid > 1 && is_child(*pid)) child->pid = *pid;
    child->listens = kind == "R" && child->pid > 0;
  } else if (kind == "C") {
    child->problem = Error(Errc::invalid_argument, cat("cwd: ", rest)).at("cwd");
  } else if (kind == "X") {
    child->problem = Error(Errc::unavailable, cat("the kernel did not start: ", rest));
  } else if (kind == "E") {
    child->end = parse_int<int>(rest).value_or(0);
    children_.erase(found);
  }
  changed_.ring();
}

Task<Result<std::shared_ptr<Forked>>> ForkServer::fork(Wish wish, Timer::time_point until) {
  if (server_ && program_ != wish.program) {
    server_->input().reset();  // the end of its input is its end; the kernels it made go on
    server_.reset();
  }
  for (;;) {
    bool fresh = !server_;
    if (fresh) {
      auto started = start(wish);
      if (!started) co_return std::move(started).error();
    }
    auto asked = server_;
    auto child = co_await ask_for(wish, until);
    // A server that was there and ended meanwhile: another one, which somebody may have started by now, may do better.
    if (child->problem && child->problem->kind() == Errc::unavailable && child->pid == 0 && !fresh && server_ != asked) continue;
    if (child->problem) co_return std::move(*child->problem);
    co_return child;
  }
}

Task<std::shared_ptr<Forked>> ForkServer::ask_for(const Wish& wish, Timer::time_point until) {
  auto child = std::make_shared<Forked>();
  child->tag = sandbox_.processes.new_tag();
  std::string id = random_hex(8);
  children_.emplace(id, child);
  ask(describe(wish, *child, id));
  while (!child->problem && !child->end && !child->listens && Timer::clock_type::now() < until) co_await changed_.wait(until);
  if (child->problem || child->listens) co_return child;
  if (child->end) {
    child->problem = Error(Errc::unavailable, cat("the kernel ended with ", *child->end, " before it was ready"));
  } else {
    if (child->pid > 0) kill_tree({child->pid, child->tag});
    child->problem = Error(Errc::timeout, "the kernel did not start in time");
  }
  co_return child;
}

}  // namespace osb::execd
