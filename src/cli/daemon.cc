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
constexpr OptionSpec kJsonOption{"--json", "", "the same as --output json"};

constexpr std::array kStartOptions{kConfigOption,
                                   OptionSpec{"--foreground", "", "stay in this terminal; logs go to stderr (the same as serve)"},
                                   kOutputOption, kJsonOption};
constexpr std::array kStopOptions{kConfigOption, OptionSpec{"-t,--timeout", "DURATION", "how long to wait for its end (default 30s)"}};
constexpr std::array kStatusOptions{kConfigOption, kOutputOption, kJsonOption};
constexpr std::array kReloadOptions{kConfigOption, kOutputOption, kJsonOption};

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
  return pid;
}

std::string socket_of(const daemon::Config& config) { return cat(config.instance_dir(), "/api.sock"); }

std::string address_of(const daemon::ServerConfig& server) { return Address{false, server.listen, server.port}.text(); }

bool as_json(const Args& args) { return wants_json(args) || args.has("json"); }

// "opensandbox.service" where systemd runs the process; "" otherwise.
std::string unit_of(pid_t pid) {
  auto text = sys::read_file(cat("/proc/", pid, "/cgroup"), 4096);
  if (!text) return {};
  for (auto line : split(*text, '\n')) {
    for (auto part : split(line, '/'))
      if (part.starts_with("opensandbox") && part.ends_with(".service")) return std::string(part);
  }
  return {};
}

// What can be told from outside: the daemon itself knows more.
json::object describe(const daemon::Config& config, pid_t pid) {
  json::object out{{"running", true}, {"pid", pid}, {"instance", config.server.instance}, {"socket", cat("unix://", socket_of(config))}};
  // A port the kernel picked is known only to the daemon that was given it.
  if (config.server.port != 0) out["address"] = address_of(config.server);
  out["keyFile"] = config.api_key_file();
  if (auto unit = unit_of(pid); !unit.empty()) out["unit"] = unit;
  return out;
}

// Its own words in place of ours; false when it does not answer.
bool ask_daemon(const daemon::Config& config, json::object& facts) {
  Api api(Address{true, socket_of(config), 0}, {});
  auto reply = api.call("GET", "/osb/v1/daemon", {}, {}, Millis(5000));
  auto told = reply ? parse_object(reply->body) : Result<json::object>(reply.error());
  if (!told) return false;
  facts.erase("keyFile");  // there is none while no key is asked for
  for (const auto& member : *told) facts[member.key()] = member.value();
  return true;
}

std::string value_text(const json::object& facts, std::string_view name) {
  const auto* value = facts.if_contains(name);
  if (value == nullptr || value->is_null()) return {};
  if (value->is_string()) return std::string(value->get_string());
  if (name == "uptimeSeconds" && value->is_int64()) return format_duration(std::chrono::seconds(value->get_int64()));
  return json::serialize(*value);
}

Result<> show(const Args& args, const json::object& facts, std::string_view headline) {
  if (as_json(args)) return print(pretty(facts));
  static constexpr std::pair<std::string_view, std::string_view> kShown[] = {
      {"version", "version"},   {"uptimeSeconds", "uptime"}, {"runtime", "runtime"},   {"sandboxes", "sandboxes"},
      {"socket", "socket"},     {"address", "address"},      {"sessions", "sessions"}, {"grpc", "grpc"},
      {"grpcError", "no grpc"}, {"keyFile", "key file"},     {"configFile", "config"}, {"log", "log"},
      {"unit", "systemd"}};
  std::string out = cat(headline, " (pid ", facts.at("pid").as_int64(), ")\n");
  for (const auto& [name, title] : kShown)
    if (auto value = value_text(facts, name); !value.empty()) out += cat("  ", title, std::string(11 - title.size(), ' '), value, "\n");
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

// This process becomes the daemon.
Result<int> start_here(const Args& args) {
  TRY(auto program, serve_program());
  std::vector<std::string> words{"opensandbox", "serve"};
  for (auto& word : config_words(args)) words.push_back(std::move(word));
  std::vector<char*> raw;
  for (auto& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  ::execv(program.c_str(), raw.data());
  return Error::from_errno(cat("start ", program), errno);
}

Result<int> start(const Args& args) {
  TRY(auto config, load_config(args));
  TRY(auto pid, running_pid(config));
  if (pid) {
    auto facts = describe(config, *pid);
    ask_daemon(config, facts);
    auto unit = text_of(facts, "unit");
    CHECK_OK(show(args, facts, unit.empty() ? "opensandbox was running already" : "opensandbox was running already, started by systemd"));
    return kExitOk;
  }
  if (args.has("foreground")) return start_here(args);
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
  ask_daemon(config, facts);
  facts["log"] = cat(config.storage.state_dir, "/serve.log");
  CHECK_OK(show(args, facts, "opensandbox is running"));
  return kExitOk;
}

std::string farewell(const json::object& facts) {
  auto count = value_text(facts, "sandboxes");
  if (count == "0") return "opensandbox stopped";
  if (value_text(facts, "runtime") == "process") return "opensandbox stopped, and its sandboxes with it";
  if (count.empty()) return "opensandbox stopped; sandboxes live on until their time is over";
  return cat("opensandbox stopped; ", count, count == "1" ? " sandbox lives" : " sandboxes live",
             " on until their time is over, and the next start finds them again");
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
  // systemd would wonder where its service went, and may start it again.
  if (auto unit = unit_of(*pid); !unit.empty())
    return Error(Errc::conflict, cat("systemd runs this daemon as ", unit)).with_hint(cat("systemctl stop ", unit));
  json::object facts;
  ask_daemon(config, facts);
  Fd process(sys::raw::pidfd_open(*pid));
  if (!process || sys::raw::pidfd_send_signal(process.get(), SIGTERM) != 0)
    return Error::from_errno(cat("tell pid ", *pid, " to stop"), errno, Errc::permission_denied);
  if (!wait_exit(process.get(), *within))
    return Error(Errc::timeout, cat("pid ", *pid, " still runs after ", format_duration(std::chrono::ceil<std::chrono::seconds>(*within))))
        .with_hint(cat("its log tells why; `kill -9 ", *pid, "` ends it, and the next start cleans up"));
  note(farewell(facts));
  return kExitOk;
}

Result<int> status(const Args& args) {
  TRY(auto config, load_config(args));
  TRY(auto pid, running_pid(config));
  if (!pid) {
    if (as_json(args))
      CHECK_OK(print(pretty(json::object{{"running", false}, {"instance", config.server.instance}})));
    else
      CHECK_OK(print("opensandbox is not running\n"));
    return kExitNotRunning;
  }
  auto facts = describe(config, *pid);
  bool answers = ask_daemon(config, facts);
  facts["healthy"] = answers;
  CHECK_OK(show(args, facts, answers ? "opensandbox is running" : "opensandbox runs but does not answer"));
  return answers ? kExitOk : kExitFailure;
}

std::string changes_text(const json::object& report) {
  const auto* changes = report.if_contains("changes");
  if (changes == nullptr || !changes->is_array() || changes->get_array().empty())
    return "configuration read again: nothing differs; keys and passwords were read from their files\n";
  std::string now, later;
  for (const auto& item : changes->get_array()) {
    if (!item.is_object()) continue;
    const auto& change = item.get_object();
    const auto* restart = change.if_contains("restart");
    auto& out = restart != nullptr && restart->is_bool() && restart->get_bool() ? later : now;
    out += cat("  ", text_of(change, "key"), ": ", text_of(change, "from"), " -> ", text_of(change, "to"), "\n");
  }
  if (!now.empty()) now = cat("in force now:\n", now);
  if (!later.empty()) later = cat("needs a restart:\n", later);
  return now + later;
}

Result<int> reload(const Args& args) {
  TRY(auto config, load_config(args));
  TRY(auto pid, running_pid(config));
  if (!pid) return Error(Errc::unavailable, "opensandbox is not running").with_hint("opensandbox daemon start");
  Api api(Address{true, socket_of(config), 0}, {});
  TRY(auto reply, api.call("POST", "/osb/v1/daemon/reload", {}, {}, Millis(30'000)));
  TRY(auto report, parse_object(reply.body));
  CHECK_OK(print(as_json(args) ? pretty(report) : changes_text(report)));
  return kExitOk;
}

}  // namespace

constinit const CommandSpec kDaemonStart{
    .name = "daemon start",
    .also = {},
    .summary = "start the daemon in the background",
    .usage = "[options]",
    .details =
        "Returns when the daemon answers, and says where it listens and where the key is. Takes every option of serve.\n"
        "A daemon that runs already is shown, not started again. Its log is <state_dir>/serve.log.",
    .examples = "opensandbox daemon start\nopensandbox daemon start --config ./sandbox-config.yaml",
    .options = kStartOptions,
    .config_flags = true,
    .main = start,
};

constinit const CommandSpec kDaemonStop{
    .name = "daemon stop",
    .also = {},
    .summary = "stop the daemon",
    .usage = "[options]",
    .details =
        "Sandboxes live on and are found again at the next start; `opensandbox kill --all` before it ends them too. With the runtime\n"
        "process they end.",
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

constinit const CommandSpec kDaemonReload{
    .name = "daemon reload",
    .also = {},
    .summary = "let the daemon read its configuration again",
    .usage = "[options]",
    .details =
        "Says what changed and what of it waits for a restart. A configuration that does not load changes nothing.\n"
        "Keys, passwords of registries and the rest of its files are read again too. SIGHUP does the same without an answer.",
    .examples = "opensandbox daemon reload\nopensandbox daemon reload --config ./sandbox-config.yaml",
    .options = kReloadOptions,
    .config_flags = true,
    .main = reload,
};

}  // namespace osb::cli
