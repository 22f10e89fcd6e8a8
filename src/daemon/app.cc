#include "daemon/app.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/basic_signal_set.hpp>
#include <boost/asio/co_spawn.hpp>
#include <cstdlib>

#include "async/task_group.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/config_changes.h"
#include "daemon/wiring.h"

namespace osb::daemon {
namespace {

using SignalSet = asio::basic_signal_set<Executor>;

// Every connection and every sandbox holds descriptors; the soft limit of a login shell is for login shells.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void announce(const App& app, ReadyFd ready) {
  log::info("ready",
            {{"socket", app.socket()}, {"address", app.address()}, {"sessions", app.sessions_address()}, {"grpc", app.grpc_address()}});
  if (ready.fd < 0) return;
  std::string line = cat("{\"ready\":true,\"socket\":", json_string(app.socket()));
  if (!app.address().empty()) line += cat(",\"address\":", json_string(app.address()));
  if (!app.sessions_address().empty()) line += cat(",\"sessions\":", json_string(app.sessions_address()));
  if (!app.grpc_address().empty()) line += cat(",\"grpc\":", json_string(app.grpc_address()));
  line += "}\n";
  [[maybe_unused]] auto n = ::write(ready.fd, line.data(), line.size());  // whoever waited may be gone
  ::close(ready.fd);
}

// One run of the daemon, from the first room to the last.
class Run {
 public:
  Run(asio::io_context& io, const Config& config, RunOptions options)
      : options_(std::move(options)),
        app_(io, config, options_.private_instance, start_runtime),
        signals_(io.get_executor(), SIGTERM, SIGINT, SIGHUP),
        stopping_(io.get_executor(), Timer::time_point::max()),
        watch_(io.get_executor()),
        changes_(config) {
    app_.on_reload([this] { return reload(); });
  }

  Task<void> main() {
    watch_.spawn("signals", watch_signals());
    auto started = co_await app_.start();
    if (started) {
      announce(app_, options_.ready);
      while (!stop_) co_await stopping_.async_wait(nothrow);
      log::info("stopping");
      co_await app_.stop();
    } else {
      failure_ = std::move(started).error();
    }
    co_await watch_.stop();
  }

  Result<int> outcome() && {
    if (failure_) return *std::move(failure_);
    return 0;
  }

 private:
  Task<void> watch_signals() {
    for (;;) {
      auto [failed, number] = co_await signals_.async_wait(nothrow);
      if (failed) co_return;
      if (number == SIGHUP) {
        [[maybe_unused]] auto told = reload();  // the log has it
        continue;
      }
      // Somebody who asks twice does not want to wait; sandboxes and records survive this as they survive a crash.
      if (stop_) std::_Exit(128 + number);
      stop_ = true;
      stopping_.cancel();
    }
  }

  // What changed, as JSON. All or nothing: a configuration that does not load leaves the running one in force.
  Result<std::string> reload() {
    if (!options_.reload || stop_) return Error(Errc::unsupported, "this daemon does not read its configuration again");
    auto config = options_.reload();
    auto applied = config ? app_.apply(*config) : Result<>(config.error());
    if (!applied) {
      log::error("configuration not reloaded, the old one stays in force", {{"error", applied.error().what()}});
      return Error(Errc::invalid_argument, cat("the old configuration stays in force: ", applied.error().what()))
          .with_code("CONFIG::INVALID")
          .with_hint(applied.error().hint());
    }
    auto changed = changes_.take(*config);
    log::info("configuration reloaded", {{"changes", cat(changed.size())}});
    return changes_json(changed);
  }

  RunOptions options_;
  App app_;
  SignalSet signals_;
  Timer stopping_;
  TaskGroup watch_;
  RunningConfig changes_;
  bool stop_ = false;
  std::optional<Error> failure_;
};

}  // namespace

Result<int> run_daemon(const Config& config, RunOptions options) {
  log::set_level(config.log.level);
  ::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  asio::io_context io(1);
  Run run(io, config, std::move(options));
  asio::co_spawn(io, run.main(), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
  return std::move(run).outcome();
}

}  // namespace osb::daemon
