#include "execd/daemon.h"

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "base/log.h"
#include "execd/collector.h"
#include "execd/privileges.h"
#include "execd/service.h"
#include "execd/signals.h"
#include "http/head.h"
#include "model/launch_wire.h"

namespace osb::execd {
namespace {

constexpr int kOwnFailure = 125;
constexpr auto kLongTime = std::chrono::hours(24);
// Since the last program ended. Then memory that served it is given back, and nothing ticks any more.
constexpr auto kRestAfter = std::chrono::seconds(60);

http::Limits limits() {
  http::Limits limits;
  limits.body_bytes = 1024 * 1024;
  limits.connections = 512;
  // A reader that thinks for a while about what it got is not gone; the program waits for it.
  limits.write_stall_deadline = std::chrono::minutes(10);
  return limits;
}

// One arena and early trimming: an idle sandbox should cost kilobytes.
void bound_heap() {
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  ::mallopt(M_TRIM_THRESHOLD, 128 * 1024);
}

// The one sandbox of this process. It has its place before it is there, so that the routes to it can be listed ahead of time.
union Place {
  Place() {}
  ~Place() {}
  Sandbox sandbox;
};
Place place;

Service& service() {
  static Service routes(place.sandbox);
  return routes;
}

void write_report(const Fd& report, wire::Step step, int sys) {
  wire::ChildReport text{.step = step, .sys = sys};
  [[maybe_unused]] auto n = report ? ::write(report.get(), &text, sizeof text) : 0;
}

class Daemon {
 public:
  explicit Daemon(Start start)
      : native_(start.setup.native),
        door_(std::move(start.door)),
        report_(std::move(start.report)),
        sandbox_(*new(&place.sandbox) Sandbox(io_.get_executor(), std::move(start.setup), std::move(start.oom_counter))),
        server_(io_, limits(), [](http::Request& request, http::Responder& responder) { return service().handle(request, responder); }) {}

  [[noreturn]] void run(Fd listener, std::uint16_t port, const std::string& socket_path) {
    auto signals = Signals::make(io_.get_executor(), !native_);
    if (!signals) fail(signals.error());
    sandbox_.tasks.spawn("signals", hear(*std::move(signals)));
    bool ahead = static_cast<bool>(door_);
    if (ahead) sandbox_.processes.prepare_next();
    if (ahead) wait_to_be_claimed();
    open_doors(std::move(listener), port, socket_path);
    start_entrypoint();
    sandbox_.kernels.prestart();
    write_report(report_, wire::Step::none, 0);
    report_.reset();
    if (!ahead) sandbox_.processes.prepare_next();
    io_.run();
    ::_exit(exit_status_);
  }

 private:
  // Nothing is left to clean up that the end of the process does not.
  [[noreturn]] void fail(const Error& error) {
    log::error("execd cannot run", {{"error", error.what()}});
    write_report(report_, wire::Step::entrypoint, error.sys() != 0 ? error.sys() : EINVAL);
    ::_exit(kOwnFailure);
  }

  // Everything but the claimer's own is ready. Whoever connects meanwhile waits in the listener's queue: no request is taken
  // before it is known whose sandbox this is.
  void wait_to_be_claimed() {
    io_.poll();
    auto text = next_setup(door_);
    if (!text) ::_exit(0);
    door_.reset();
    auto claimed = claimed_setup(sandbox_.setup, *text);
    if (!claimed) fail(claimed.error());
    sandbox_.setup = *std::move(claimed);
  }

  void open_doors(Fd listener, std::uint16_t port, const std::string& socket_path) {
    if (listener) {
      if (auto done = server_.listen_fd(std::move(listener)); !done) fail(done.error());
    }
    if (port != 0) {
      if (auto done = server_.listen_tcp("0.0.0.0", port); !done) fail(done.error());
    }
    if (!socket_path.empty()) {
      if (auto done = server_.listen_unix(socket_path, 0600); !done) fail(done.error());
    }
  }

  void start_entrypoint() {
    if (sandbox_.setup.entrypoint.empty()) return;
    StartRequest request;
    request.base_env = &sandbox_.setup.env;
    request.cwd = sandbox_.setup.cwd;
    request.cwd_may_be_missing = true;
    request.env.insert_or_assign("PWD", request.cwd);
    request.attempts = attempts_for_argv(sandbox_.setup.entrypoint);
    request.merge_output = native_;
    // Elsewhere the container's own log shows what the entrypoint says.
    request.inherit_stdio = !native_;
    if (const Identity* who = becomes(sandbox_.setup)) request.who = *who;
    auto process = sandbox_.processes.start(request);
    if (!process) fail(process.error());
    entrypoint_ = *process;
    sandbox_.tasks.spawn("entrypoint", outlive_entrypoint());
    if (native_) sandbox_.tasks.spawn("entrypoint output", collect_into(*process, sandbox_.entrypoint_output));
  }

  Task<void> outlive_entrypoint() {
    bool ended = false;
    while (!ended) ended = co_await entrypoint_->wait_end(kLongTime);
    stop(terminating_ ? 0 : entrypoint_->end()->code);
  }

  Task<void> hear(Signals signals) {
    for (;;) {
      co_await signals.ready();
      // The first end is answered before anything else; the signal is taken before the last look, so that none is missed.
      bool ended = sandbox_.processes.hear_first();
      auto seen = signals.take();
      while ((ended || seen.child) && sandbox_.processes.reap()) co_await give_way();
      if (ended || seen.child) rest_later();
      if (!seen.terminate) continue;
      terminating_ = true;
      if (entrypoint_ && entrypoint_->running())
        entrypoint_->signal_group(SIGTERM);
      else
        stop(0);
    }
  }

  // One timer for a whole burst of programs: it looks again when there was one since.
  void rest_later() {
    last_end_ = Timer::clock_type::now();
    if (!std::exchange(will_rest_, true)) sandbox_.tasks.spawn("rest", rest());
  }

  Task<void> rest() {
    Timer timer(io_.get_executor());
    for (auto until = last_end_ + kRestAfter; until > Timer::clock_type::now(); until = last_end_ + kRestAfter) {
      timer.expires_at(until);
      co_await timer.async_wait(nothrow);
    }
    will_rest_ = false;
    sandbox_.runs.give_back();
    give_back_scratch();
    ::malloc_trim(0);
  }

  void stop(int status) {
    exit_status_ = status;
    io_.stop();
  }

  asio::io_context io_{1};
  bool native_;
  Fd door_;
  Fd report_;
  Sandbox& sandbox_;
  http::Server server_;
  std::shared_ptr<Process> entrypoint_;
  Timer::time_point last_end_;
  bool will_rest_ = false;
  bool terminating_ = false;
  int exit_status_ = 0;
};

}  // namespace

void prepare_daemon() {
  static bool prepared = false;
  if (std::exchange(prepared, true)) return;
  bound_heap();
  reset_dispositions();
  service();
  // Tables of the libraries that are made when they are first needed. The request has an id: none may be drawn before a division, or
  // sandboxes would have them in common.
  http::Request request;
  http::MessageInfo info;
  http::parse_request_head("GET / HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: none\r\n\r\n", limits(), request, info);
}

[[noreturn]] void run_daemon(Start start) {
  prepare_daemon();
  ::umask(022);
  Result<> shed = Ok{};
  // One session for the whole sandbox: whatever terminal the launcher had, nobody in here can reach it.
  if (start.setup.native) ::setsid();
  // Before PR_SET_DUMPABLE: a change of identity sets it anew.
  if (start.setup.native) shed = own_files_as(start.setup.who.uid, start.setup.who.gid);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (::getpid() != 1) ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (start.setup.native && !start.walled && shed) shed = shed_privileges(start.setup.keep_caps);
  if (!shed) {
    write_report(start.report, wire::Step::entrypoint, shed.error().sys());
    ::_exit(kOwnFailure);
  }
  complete_setup(start.setup);
  Fd listener = std::move(start.listener);
  std::uint16_t port = start.port;
  std::string socket_path = std::move(start.socket_path);
  Daemon daemon(std::move(start));
  daemon.run(std::move(listener), port, socket_path);
}

}  // namespace osb::execd
