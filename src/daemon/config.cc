#include "daemon/config.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "daemon/config_file.h"

namespace osb::daemon {
namespace {

constexpr std::string_view kKeyVariable = "OPENSANDBOX_SERVER_API_KEY";
constexpr std::string_view kInsecureVariable = "OPENSANDBOX_INSECURE_SERVER";
// A unix socket path holds 107 characters; "/sandboxes/<id>.sock" must still fit behind the instance's directory.
constexpr std::size_t kMaxInstanceDir = 107 - 11 - 26 - 5;

using Pairs = std::vector<std::pair<std::string, std::string>>;

void set_from(const Option& option, const std::string& value, Source source, std::string_view where, Config& config,
              std::vector<std::string>& problems) {
  auto set = option.set(config, value);
  if (set) {
    config.sources[std::string(option.path)] = source;
  } else {
    problems.push_back(cat(where, ": ", set.error().what(), ", not ", json_string(value.substr(0, 80))));
  }
}

void apply_key_variable(const std::string& value, Config& config, std::vector<std::string>& problems) {
  bool sendable = std::all_of(value.begin(), value.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (!sendable || value.size() > 512) {
    problems.push_back(cat(kKeyVariable, ": must be at most 512 visible ASCII characters"));
    return;
  }
  config.auth.api_key = value;
}

void apply_insecure_variable(const std::string& value, Config& config, std::vector<std::string>& problems) {
  if (value != "YES") {
    problems.push_back(cat(kInsecureVariable, ": the only value that means something is YES, not ", json_string(value.substr(0, 80))));
    return;
  }
  config.auth.insecure_no_auth = true;
  config.sources["auth.insecure_no_auth"] = Source::environment;
}

// An empty variable counts as not set: that is how a shell or a unit file switches one off.
void apply_environment(const Pairs& environment, Config& config, std::vector<std::string>& problems) {
  for (const auto& [name, value] : environment) {
    if (value.empty()) continue;
    if (name == kKeyVariable) apply_key_variable(value, config, problems);
    if (name == kInsecureVariable) apply_insecure_variable(value, config, problems);
    for (const auto& option : options())
      if (option.is_scalar && option.env == name) set_from(option, value, Source::environment, name, config, problems);
  }
}

void apply_flags(const Pairs& flags, Config& config, std::vector<std::string>& problems) {
  for (const auto& [name, value] : flags) {
    auto all = options();
    auto found = std::find_if(all.begin(), all.end(), [&](const Option& o) { return !o.flag.empty() && o.flag == name; });
    if (found != all.end()) {
      set_from(*found, value, Source::flag, cat("--", name), config, problems);
      continue;
    }
    std::vector<std::string_view> known;
    for (const auto& option : all) known.push_back(option.flag);
    auto close = nearest(name, known);
    problems.push_back(cat("--", name, ": unknown flag", close ? cat("; did you mean --", *close, "?") : std::string()));
  }
}

// What no single key can tell.
void check_together(const Config& config, std::vector<std::string>& problems) {
  if (config.security.mode == UserMode::root && !config.security.allow_root_mode)
    problems.push_back("security.mode is root, but security.allow_root_mode is false");
  if (config.security.syscall_allowlist == SyscallProfile::permissive && !config.security.allow_permissive)
    problems.push_back("security.syscall_allowlist is permissive, but security.allow_permissive is false");
  auto cap = config.server.max_sandbox_timeout_seconds;
  if (cap && config.resources.timeout_seconds > *cap)
    problems.push_back(
        cat("resources.timeout_seconds is ", config.resources.timeout_seconds, ", more than server.max_sandbox_timeout_seconds of ", *cap));
  if (config.instance_dir().size() > kMaxInstanceDir)
    problems.push_back(cat("storage.run_dir and server.instance make a path of ", config.instance_dir().size(),
                           " characters; sockets below it allow ", kMaxInstanceDir));
}

}  // namespace

std::string_view name_of(Source source) {
  switch (source) {
    case Source::builtin: return "default";
    case Source::file: return "file";
    case Source::environment: return "environment";
    case Source::flag: return "flag";
  }
  return "?";
}

Limits Config::default_limits() const {
  Limits out;
  out.memory_bytes = resources.memory_mb << 20;
  out.cpu_millis = resources.cpu_millis;
  out.disk_bytes = resources.disk_mb << 20;
  out.pids = resources.pids;
  return out;
}

Policy Config::default_policy() const {
  return {security.mode, security.syscall_allowlist, security.read_only_root ? RootMode::read_only : RootMode::writable};
}

std::string Config::api_key_file() const { return auth.api_key_file.empty() ? storage.state_dir + "/api-key" : auth.api_key_file; }
std::string Config::audit_directory() const { return audit.directory.empty() ? storage.state_dir + "/audit" : audit.directory; }
std::string Config::instance_dir() const { return storage.run_dir + "/" + server.instance; }

Result<Config> load(const Inputs& inputs) {
  Config config;
  std::vector<std::string> problems;
  if (inputs.file) {
    TRY(auto text, read_config_file(*inputs.file));
    config.file = *inputs.file;
    apply_config_text(text, *inputs.file, config, problems);
  }
  apply_environment(inputs.environment, config, problems);
  apply_flags(inputs.flags, config, problems);
  if (problems.empty()) check_together(config, problems);
  if (problems.empty()) return config;
  std::string all;
  for (const auto& problem : problems) all += cat(all.empty() ? "" : "\n", problem);
  return Error(Errc::invalid_argument, std::move(all));
}

std::vector<std::pair<std::string, std::string>> process_environment() {
  Pairs out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view pair(*entry);
    auto equals = pair.find('=');
    if (equals != std::string_view::npos) out.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return out;
}

std::optional<std::uint32_t> uid_of(const std::string& user) {
  if (auto number = parse_int<std::uint32_t>(user)) return *number == ~0u ? std::nullopt : number;
  const passwd* found = user.empty() ? nullptr : ::getpwnam(user.c_str());
  if (found == nullptr) return std::nullopt;
  return found->pw_uid;
}

}  // namespace osb::daemon
