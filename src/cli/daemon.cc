#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <array>
#include <boost/json.hpp>
#include <cerrno>

#include "base/text.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/daemon_config.h"
#include "cli/exit_code.h"
#include "cli/spawn.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "sys/kernel_file.h"
#include "sys/raw.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

constexpr Millis kReadyWithin{30'000};

constexpr std::array kStartOptions{kConfigOption, kOutputOption};
constexpr std::array kStopOptions{kConfigOption, OptionSpec{"-t,--timeout", "DURATION", "how long to wait for its end (default 30s)"}};
constexpr std::array kStatusOptions{kConfigOption, kOutputOption};

// The daemon holds a lock on its pid file as long as it lives, so a number in a file nobody locks means nothing.
Result<std::optional<pid_t>> running_pid(const daemon::Config& config) {
  auto path = cat(config.instance_dir(), "/serve.pid");
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno == ENOENT) return std::optional<pid_t>{};
  if (!file)
    return Error::from_errno(cat("open ", path), errno, Errc::permission_denied)
        .with_hint("run as the user the daemon runs as, usually root");
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return std::optional<pid_t>{};
  TRY(auto text, sys::read_file(path, 64));
  auto pid = parse_int<pid_t>(split(text, '\n')[0]);
  if (!pid || *pid <= 1) return Error(Errc::internal, cat(path, " is locked but names no process"));
  return std::optional<pid_t>(*pid);
}

std::string socket_of(const daemon::Config& config) { return cat(config.instance_dir(), "/api.sock"); }

std::string address_of(const daemon::ServerConfig& server) { return Address{false, server.listen, server.port}.text(); }

json::object describe(const daemon::Config& config, pid_t pid) {
  json::object out{{"running", true}, {"pid", pid}, {"instance", config.server.instance}, {"socket", cat("unix://", socket_of(config))}};
  // A port the kernel picked is known only to the daemon that was given it.
  if (config.server.port != 0) out["address"] = address_of(config.server);
  out["keyFile"] = config.api_key_file();
  return out;
}

Result<> show(const Args& args, const json::object& facts, std::string_view headline) {
  if (wants_json(args)) return print(pretty(facts));
  std::string out = cat(headline, " (pid ", facts.at("pid").as_int64(), ")\n");
  for (auto name : {"socket", "address", "keyFile", "log"})
    if (auto value = text_of(facts, name); !value.empty())
      out += cat("  ", name, std::string(9 - std::string_view(name).size(), ' '), value, "\n");
  return print(out);
}

Result<Fd> open_log(const daemon::Config& config) {
  auto path = cat(config.storage.state_dir, "/serve.log");
  auto made = sys::make_dirs(config.storage.state_dir, 0700);
  auto log = made ? sys::open_at(AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600) : Result<Fd>(made.error());
  if (!log && log.error().sys() == EACCES)
    return std::move(log).error().with_hint("run as root, or give --state-dir and --run-dir of your own");
  return log;
}

Result<int> start(const Args& args) {
  TRY(auto config, load_config(args));
  TRY(auto pid, running_pid(config));
  if (pid) {
    CHECK_OK(show(args, describe(config, *pid), "opensandbox was running already"));
    return kExitOk;
  }
  TRY(auto log, open_log(config));
  TRY(auto child, spawn_serve(config_words(args), log.get()));
  auto ready = wait_ready(child, kReadyWithin, nullptr);
  if (!ready) {
    // Not ready is not started: nothing half-alive stays behind.
    sys::raw::pidfd_send_signal(child.process.get(), SIGTERM);
    wait_exit(child.process.get(), Millis(5000));
    return std::move(ready).error().in("start the daemon");
  }
  auto facts = describe(config, child.pid);
  if (auto address = text_of(*ready, "address"); !address.empty()) facts["address"] = cat("http://", address);
  facts["log"] = cat(config.storage.state_dir, "/serve.log");
  CHECK_OK(show(args, facts, "opensandbox is running"));
  return kExitOk;
}

Result<int> stop(const Args& args) {
  auto within = parse_duration(args.get("timeout", "30s"));
  if (!within) return usage_error(within.error().what(), within.error().hint());
  TRY(auto config, load_config(args));
  TRY(auto pid, running_pid(config));
  if (!pid) {
    note("opensandbox is not running");
    return kExitOk;
  }
  Fd process(sys::raw::pidfd_open(*pid));
  if (!process || sys::raw::pidfd_send_signal(process.get(), SIGTERM) != 0)
    return Error::from_errno(cat("tell pid ", *pid, " to stop"), errno, Errc::permission_denied);
  if (!wait_exit(process.get(), *within))
    return Error(Errc::timeout, cat("pid ", *pid, " still runs after ", format_duration(std::chrono::ceil<std::chrono::seconds>(*within))))
        .with_hint(cat("its log tells why; `kill -9 ", *pid, "` ends it, and the next start cleans up"));
  note("opensandbox stopped; sandboxes live on until their time is over");
  return kExitOk;
}

Result<int> status(const Args& args) {
  TRY(auto config, load_config(args));
  TRY(auto pid, running_pid(config));
  if (!pid) {
    if (wants_json(args))
      CHECK_OK(print(pretty(json::object{{"running", false}, {"instance", config.server.instance}})));
    else
      CHECK_OK(print("opensandbox is not running\n"));
    return kExitNotRunning;
  }
  auto facts = describe(config, *pid);
  Api api(Address{true, socket_of(config), 0}, {});
  bool answers = static_cast<bool>(api.call("GET", "/health", {}, {}, Millis(5000)));
  facts["healthy"] = answers;
  CHECK_OK(show(args, facts, answers ? "opensandbox is running" : "opensandbox runs but does not answer"));
  return answers ? kExitOk : kExitFailure;
}

}  // namespace

constinit const CommandSpec kDaemonStart{
    .name = "daemon start",
    .also = {},
    .summary = "start the daemon in the background",
    .usage = "[options]",
    .details = "Returns when the daemon answers, and says where it listens and where the key is. Takes every option of serve.",
    .examples = "opensandbox daemon start\nopensandbox daemon start --config /etc/opensandbox/sandbox-config.yaml",
    .options = kStartOptions,
    .config_flags = true,
    .main = start,
};

constinit const CommandSpec kDaemonStop{
    .name = "daemon stop",
    .also = {},
    .summary = "stop the daemon",
    .usage = "[options]",
    .details = "Sandboxes live on and are found again at the next start; `opensandbox kill --all` before it ends them too.",
    .examples = "opensandbox daemon stop\nopensandbox kill --all; opensandbox daemon stop",
    .options = kStopOptions,
    .config_flags = true,
    .main = stop,
};

constinit const CommandSpec kDaemonStatus{
    .name = "daemon status",
    .also = {},
    .summary = "say whether the daemon runs",
    .usage = "[options]",
    .details = "Exit status 0: it runs and answers; 1: it runs and does not answer; 3: it does not run.",
    .examples = "opensandbox daemon status -o json",
    .options = kStatusOptions,
    .config_flags = true,
    .main = status,
};

}  // namespace osb::cli
