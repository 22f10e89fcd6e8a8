// The table: one row a key. The setters are the only place that knows types and bounds.
#include <arpa/inet.h>

#include <algorithm>
#include <concepts>

#include "base/text.h"
#include "daemon/config.h"
#include "model/create_request.h"
#include "model/quantity.h"

namespace osb::daemon {
namespace {

constexpr std::size_t kMaxPath = 4096;

Error bad(std::string what) { return {Errc::invalid_argument, std::move(what)}; }

template <std::integral N>
Result<> set_number(N& field, std::string_view text, std::int64_t low, std::int64_t high) {
  auto number = parse_int<std::int64_t>(text);
  if (!number || *number < low || *number > high) return bad(cat("must be a whole number from ", low, " to ", high));
  field = static_cast<N>(*number);
  return Ok{};
}

Result<> set_bool(bool& field, std::string_view text) {
  if (!iequals(text, "true") && !iequals(text, "false")) return bad("must be true or false");
  field = iequals(text, "true");
  return Ok{};
}

Result<> set_path(std::string& field, std::string_view text) {
  bool clean = std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (!text.starts_with('/') || text.size() > kMaxPath || !clean) return bad("must be an absolute path");
  while (text.size() > 1 && text.ends_with('/')) text.remove_suffix(1);
  if (text == "/") return bad("must not be the root directory");
  field = text;
  return Ok{};
}

Result<> set_optional_path(std::string& field, std::string_view text) {
  if (!text.empty()) return set_path(field, text);
  field.clear();
  return Ok{};
}

Result<> set_runtime(std::string& field, std::string_view text) {
  static const std::vector<std::string_view> kPlanned{"docker", "gvisor", "kubernetes", "vm"};
  if (std::find(kPlanned.begin(), kPlanned.end(), text) != kPlanned.end())
    return bad(cat("the runtime ", text, " is not available in this build; use native or process"));
  if (text != "native" && text != "process" && text != "subprocess") return bad("must be native or process");
  field = text == "subprocess" ? "process" : text;
  return Ok{};
}

Result<> set_syscalls(SyscallProfile& field, std::string_view text) {
  auto profile = parse_syscall_profile(text);
  if (!profile) return bad("must be minimal, default or permissive");
  field = *profile;
  return Ok{};
}

Result<> set_mode(UserMode& field, std::string_view text) {
  auto mode = parse_user_mode(text);
  if (!mode) return bad("must be user or root");
  field = *mode;
  return Ok{};
}

Result<> set_network(std::string& field, std::string_view text) {
  if (text != "deny_all") return bad("must be deny_all; control of outgoing traffic is not available in this build");
  field = text;
  return Ok{};
}

Result<> set_ephemeral(bool& field, std::string_view text) {
  CHECK_OK(set_bool(field, text));
  if (!field) return bad("must be true; sandboxes whose files outlive them are not available in this build");
  return Ok{};
}

Result<> set_address(std::string& field, std::string_view text) {
  std::string address(text);
  in6_addr parsed{};
  if (::inet_pton(AF_INET, address.c_str(), &parsed) != 1 && ::inet_pton(AF_INET6, address.c_str(), &parsed) != 1)
    return bad("must be an IP address such as 127.0.0.1, 0.0.0.0 or ::1");
  field = std::move(address);
  return Ok{};
}

Result<> set_host(std::string& field, std::string_view text) {
  auto ok = [](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == ':' || c == '[' || c == ']';
  };
  if (text.size() > 255 || !std::all_of(text.begin(), text.end(), ok))
    return bad("must be a host name or address, with :port where needed, without http://");
  field = text;
  return Ok{};
}

Result<> set_instance(std::string& field, std::string_view text) {
  auto ok = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  if (text.empty() || text.size() > 32 || text.front() == '-' || !std::all_of(text.begin(), text.end(), ok))
    return bad("must be 1 to 32 of a-z, 0-9 and '-', not beginning with '-'");
  field = text;
  return Ok{};
}

Result<> set_cap(std::optional<std::int64_t>& field, std::string_view text) {
  return set_number(field.emplace(), text, kMinTimeoutSeconds, kMaxTimeoutSeconds);
}

Result<> set_level(log::Level& field, std::string_view text) {
  static constexpr std::pair<std::string_view, log::Level> kLevels[] = {
      {"debug", log::Level::debug}, {"info", log::Level::info}, {"warn", log::Level::warn}, {"error", log::Level::error}};
  for (const auto& [name, level] : kLevels)
    if (name == text) {
      field = level;
      return Ok{};
    }
  return bad("must be debug, info, warn or error");
}

Result<> set_action(CommandAction& field, std::string_view text) {
  auto action = parse_command_action(text);
  if (!action) return bad("must be allow, ask or deny");
  field = *action;
  return Ok{};
}

Result<> set_self_approval(SelfApproval& field, std::string_view text) {
  auto setting = parse_self_approval(text);
  if (!setting) return bad("must be privileged, always or never");
  field = *setting;
  return Ok{};
}

std::string show_level(log::Level level) {
  switch (level) {
    case log::Level::debug: return "debug";
    case log::Level::info: return "info";
    case log::Level::warn: return "warn";
    case log::Level::error: return "error";
  }
  return "info";
}

// As the configuration file writes it: 1, 0.5, 1.25.
std::string show_cpus(std::uint32_t millis) {
  if (millis % 1000 == 0) return cat(millis / 1000);
  auto fraction = cat(1000 + millis % 1000).substr(1);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return cat(millis / 1000, ".", fraction);
}

std::string show_keys(const Config& c) {
  std::string out = "[";
  for (const auto& key : c.auth.keys) {
    out += cat(out.size() > 1 ? ", " : "", "{name: ", json_string(key.name),
               key.key_file.empty() ? ", sha256: " : ", key_file: ", json_string(key.key_file.empty() ? key.sha256 : key.key_file),
               key.sees_all ? ", sees_all: true}" : "}");
  }
  return out + "]";
}

std::string show_host_paths(const Config& c) {
  std::string out = "[";
  for (const auto& path : c.storage.allowed_host_paths) out += cat(out.size() > 1 ? ", " : "", json_string(path));
  return out + "]";
}

std::string show_aliases(const Config& c) {
  std::string out = "{";
  for (const auto& [from, to] : c.images.aliases) out += cat(out.size() > 1 ? ", " : "", json_string(from), ": ", json_string(to));
  return out + "}";
}

std::string show_list(const std::vector<std::string>& list) {
  std::string out = "[";
  for (const auto& item : list) out += cat(out.size() > 1 ? ", " : "", json_string(item));
  return out + "]";
}

std::string show_registries(const Config& c) {
  std::string out = "[";
  for (const auto& one : c.images.registries)
    out += cat(out.size() > 1 ? ", " : "", "{host: ", json_string(one.host), ", username: ", json_string(one.username),
               ", password_file: ", json_string(one.password_file), "}");
  return out + "]";
}

std::string show_pools(const Config& c) {
  std::string out = "[";
  for (const auto& pool : c.pools) {
    out += cat(out.size() > 1 ? ", " : "", "{name: ", json_string(pool.name), ", image: ", json_string(pool.image));
    const std::pair<std::string_view, const std::string&> kTexts[] = {
        {"cpu", pool.cpu},   {"memory", pool.memory},     {"disk", pool.disk}, {"pids", pool.pids},
        {"mode", pool.mode}, {"syscalls", pool.syscalls}, {"root", pool.root}};
    for (const auto& [name, text] : kTexts)
      if (!text.empty()) out += cat(", ", name, ": ", json_string(text));
    out += cat(", buffer_min: ", pool.buffer_min, ", buffer_max: ", pool.buffer_max, ", pool_min: ", pool.pool_min);
    out += pool.pool_max ? cat(", pool_max: ", *pool.pool_max, "}") : std::string("}");
  }
  return out + "]";
}

Result<> set_pull(bool& field, std::string_view text) {
  if (text != "missing" && text != "never") return bad("must be missing or never");
  field = text == "missing";
  return Ok{};
}

// As image names write it: lowercase, no scheme.
Result<> set_registry(std::string& field, std::string_view text) {
  auto ok = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' || c == ':' || c == '/';
  };
  bool fine = text.size() <= 200 && std::all_of(text.begin(), text.end(), ok) && !text.ends_with('/') && !text.starts_with('/') &&
              text.find("//") == text.npos;
  if (!fine) return bad("must be a registry such as registry.example or registry.example:5000/team, without https://");
  field = text;
  return Ok{};
}

Result<> set_image_bytes(std::optional<std::uint64_t>& field, std::string_view text) {
  return set_number(field.emplace(), text, std::int64_t{1} << 20, std::int64_t{1} << 50);
}

Result<> set_pool_memory(std::optional<std::uint64_t>& field, std::string_view text) {
  auto bytes = parse_bytes(text);
  if (!bytes || *bytes < (1ull << 20) || *bytes > (1ull << 40)) return bad("must be an amount from 1Mi to 1Ti, such as 64Mi");
  field = *bytes;
  return Ok{};
}

Result<> set_optional_number(std::optional<std::uint64_t>& field, std::string_view text, std::int64_t low, std::int64_t high) {
  std::uint64_t number = 0;
  CHECK_OK(set_number(number, text, low, high));
  field = number;
  return Ok{};
}

std::string show_optional(const std::optional<std::uint64_t>& field) { return field ? cat(*field) : std::string("null"); }

using View = std::string_view;
using C = const Config&;

const Option kOptions[] = {
    {"runtime", "OPENSANDBOX_RUNTIME", "runtime", "native or process",
     "what sandboxes are made of: by root, or by an ordinary user for himself", true,
     [](Config& c, View t) { return set_runtime(c.runtime, t); }, [](C c) { return c.runtime; }},

    {"resources.memory_mb", "OPENSANDBOX_RESOURCES_MEMORY_MB", "memory-mb", "whole number 16..1048576, MiB",
     "memory of a sandbox that does not ask for an amount", true,
     [](Config& c, View t) { return set_number(c.resources.memory_mb, t, 16, 1 << 20); }, [](C c) { return cat(c.resources.memory_mb); }},
    {"resources.cpu_cores", "OPENSANDBOX_RESOURCES_CPU_CORES", "cpu-cores", "number 0.01..1024",
     "cpus of a sandbox that does not ask for an amount", true,
     [](Config& c, View t) -> Result<> {
       auto millis = parse_cpu(t);
       if (!millis) return bad("must be a number from 0.01 to 1024 in steps of 0.001");
       c.resources.cpu_millis = *millis;
       return Ok{};
     },
     [](C c) { return show_cpus(c.resources.cpu_millis); }},
    {"resources.disk_mb", "OPENSANDBOX_RESOURCES_DISK_MB", "disk-mb", "whole number 1..16777216, MiB",
     "disk of a sandbox that does not ask for an amount", true,
     [](Config& c, View t) { return set_number(c.resources.disk_mb, t, 1, 16 << 20); }, [](C c) { return cat(c.resources.disk_mb); }},
    {"resources.timeout_seconds", "OPENSANDBOX_RESOURCES_TIMEOUT_SECONDS", "timeout-seconds", "whole number 1..315360000",
     "lifetime of a sandbox made by the command line without a timeout", true,
     [](Config& c, View t) { return set_number(c.resources.timeout_seconds, t, 1, 315'360'000); },
     [](C c) { return cat(c.resources.timeout_seconds); }},
    {"resources.pids", "OPENSANDBOX_RESOURCES_PIDS", "pids", "whole number 8..32768",
     "processes and threads of a sandbox that does not ask for a number", true,
     [](Config& c, View t) { return set_number(c.resources.pids, t, kMinPids, kMaxPids); }, [](C c) { return cat(c.resources.pids); }},

    {"security.syscall_allowlist", "OPENSANDBOX_SECURITY_SYSCALL_ALLOWLIST", "syscall-allowlist", "minimal, default or permissive",
     "system calls a sandbox may use by default", true, [](Config& c, View t) { return set_syscalls(c.security.syscall_allowlist, t); },
     [](C c) { return std::string(name_of(c.security.syscall_allowlist)); }},
    {"security.network_policy", "OPENSANDBOX_SECURITY_NETWORK_POLICY", "network-policy", "deny_all", "what a sandbox may reach by default",
     true, [](Config& c, View t) { return set_network(c.security.network_policy, t); }, [](C c) { return c.security.network_policy; }},
    {"security.read_only_root", "OPENSANDBOX_SECURITY_READ_ONLY_ROOT", "read-only-root", "true or false",
     "whether the root file system of a sandbox is read-only by default", true,
     [](Config& c, View t) { return set_bool(c.security.read_only_root, t); }, [](C c) { return cat(c.security.read_only_root); }},
    {"security.mode", "OPENSANDBOX_SECURITY_MODE", "mode", "user or root",
     "who code in a sandbox is by default: uid 1000 without capabilities, or root inside", true,
     [](Config& c, View t) { return set_mode(c.security.mode, t); }, [](C c) { return std::string(name_of(c.security.mode)); }},
    {"security.allow_root_mode", "OPENSANDBOX_SECURITY_ALLOW_ROOT_MODE", "allow-root-mode", "true or false",
     "whether a request may ask for root inside its sandbox", true,
     [](Config& c, View t) { return set_bool(c.security.allow_root_mode, t); }, [](C c) { return cat(c.security.allow_root_mode); }},
    {"security.allow_permissive", "OPENSANDBOX_SECURITY_ALLOW_PERMISSIVE", "allow-permissive", "true or false",
     "whether a request may ask for the permissive syscall profile", true,
     [](Config& c, View t) { return set_bool(c.security.allow_permissive, t); }, [](C c) { return cat(c.security.allow_permissive); }},

    {"sessions.ephemeral", "OPENSANDBOX_SESSIONS_EPHEMERAL", "ephemeral", "true", "whether everything of a sandbox goes when it ends", true,
     [](Config& c, View t) { return set_ephemeral(c.sessions.ephemeral, t); }, [](C c) { return cat(c.sessions.ephemeral); }},
    {"sessions.max_concurrent", "OPENSANDBOX_SESSIONS_MAX_CONCURRENT", "max-concurrent", "whole number 1..1000000",
     "sandboxes at the same time", true, [](Config& c, View t) { return set_number(c.sessions.max_concurrent, t, 1, 1'000'000); },
     [](C c) { return cat(c.sessions.max_concurrent); }},
    {"sessions.enabled", "OPENSANDBOX_SESSIONS_ENABLED", "sessions", "true or false", "whether the session API is served", true,
     [](Config& c, View t) { return set_bool(c.sessions.enabled, t); }, [](C c) { return cat(c.sessions.enabled); }},
    {"sessions.listen", "OPENSANDBOX_SESSIONS_LISTEN", "sessions-listen", "IP address",
     "where the session API listens; elsewhere than on loopback every caller shows a key", true,
     [](Config& c, View t) { return set_address(c.sessions.listen, t); }, [](C c) { return c.sessions.listen; }},
    {"sessions.port", "OPENSANDBOX_SESSIONS_PORT", "sessions-port", "whole number 0..65535; 0 = a free one", "port of the session API",
     true, [](Config& c, View t) { return set_number(c.sessions.port, t, 0, 65535); }, [](C c) { return cat(c.sessions.port); }},
    {"sessions.idle_seconds", "OPENSANDBOX_SESSIONS_IDLE_SECONDS", "sessions-idle-seconds", "whole number 1..31536000",
     "after so much time without use an ephemeral session ends", true,
     [](Config& c, View t) { return set_number(c.sessions.idle_seconds, t, 1, 31'536'000); },
     [](C c) { return cat(c.sessions.idle_seconds); }},
    {"sessions.require_key", "OPENSANDBOX_SESSIONS_REQUIRE_KEY", "sessions-require-key", "true or false",
     "whether the session API wants a key also from programs of root and of the daemon's own user", true,
     [](Config& c, View t) { return set_bool(c.sessions.require_key, t); }, [](C c) { return cat(c.sessions.require_key); }},
    {"sessions.users_without_key", "", "", "list of user names or numbers",
     "users of this machine whose programs call the session API without a key, besides root and the daemon's own", false, nullptr,
     [](C c) { return show_list(c.sessions.users_without_key); }},
    {"sessions.allowed_origins", "", "", "list of origins, such as http://localhost:5173",
     "pages that may call the session API; empty = none", false, nullptr, [](C c) { return show_list(c.sessions.allowed_origins); }},

    {"pool.automatic", "OPENSANDBOX_POOL_AUTOMATIC", "pool-automatic", "true or false",
     "whether sandboxes of a kind that is asked for are made ahead of time", true,
     [](Config& c, View t) { return set_bool(c.pool.automatic, t); }, [](C c) { return cat(c.pool.automatic); }},
    {"pool.max_spares", "OPENSANDBOX_POOL_MAX_SPARES", "pool-max-spares", "whole number 0..10000; 0 = none, named pools included",
     "sandboxes made ahead of time, of all kinds together", true,
     [](Config& c, View t) { return set_number(c.pool.max_spares, t, 0, 10'000); }, [](C c) { return cat(c.pool.max_spares); }},
    {"pool.max_memory", "OPENSANDBOX_POOL_MAX_MEMORY", "pool-max-memory",
     "amount from 1Mi to 1Ti, such as 64Mi; unset = an eighth of what the host has available",
     "what sandboxes made ahead of time may take together", true, [](Config& c, View t) { return set_pool_memory(c.pool.max_memory, t); },
     [](C c) { return c.pool.max_memory ? cat(*c.pool.max_memory) : std::string("null"); }},
    {"pool.parts", "OPENSANDBOX_POOL_PARTS", "pool-parts", "whole number 0..256; 0 = none",
     "berths (id range, namespaces, groups, first process) made ahead for sandboxes that are made on the spot; 0 also: none is used again",
     true, [](Config& c, View t) { return set_number(c.pool.parts, t, 0, 256); }, [](C c) { return cat(c.pool.parts); }},

    {"pools", "", "", "list of {name, image, cpu, memory, disk, pids, mode, syscalls, root, buffer_min, buffer_max, pool_min, pool_max}",
     "named pools, for creates whose extensions.poolRef names one", false, nullptr, show_pools},

    {"limits.max_sandboxes_per_key", "OPENSANDBOX_LIMITS_MAX_SANDBOXES_PER_KEY", "max-sandboxes-per-key",
     "whole number 1..1000000; unset = no bound of its own", "sandboxes of one key at the same time", true,
     [](Config& c, View t) { return set_optional_number(c.limits.max_sandboxes_per_key, t, 1, 1'000'000); },
     [](C c) { return show_optional(c.limits.max_sandboxes_per_key); }},
    {"limits.max_creates_in_flight", "OPENSANDBOX_LIMITS_MAX_CREATES_IN_FLIGHT", "max-creates-in-flight",
     "whole number 0..4096; 0 = four for each cpu, at least 8", "creates worked on at the same time; the others wait, keys in turn", true,
     [](Config& c, View t) { return set_number(c.limits.max_creates_in_flight, t, 0, 4096); },
     [](C c) { return cat(c.limits.max_creates_in_flight); }},
    {"limits.max_waiting_per_key", "OPENSANDBOX_LIMITS_MAX_WAITING_PER_KEY", "max-waiting-per-key", "whole number 1..100000",
     "creates of one key that may wait for their turn", true,
     [](Config& c, View t) { return set_number(c.limits.max_waiting_per_key, t, 1, 100'000); },
     [](C c) { return cat(c.limits.max_waiting_per_key); }},
    {"limits.max_waiting", "OPENSANDBOX_LIMITS_MAX_WAITING", "max-waiting", "whole number 1..100000",
     "creates of all keys that may wait for their turn", true,
     [](Config& c, View t) { return set_number(c.limits.max_waiting, t, 1, 100'000); }, [](C c) { return cat(c.limits.max_waiting); }},
    {"limits.max_wait_seconds", "OPENSANDBOX_LIMITS_MAX_WAIT_SECONDS", "max-wait-seconds", "whole number 1..3600",
     "longest a create waits for its turn", true, [](Config& c, View t) { return set_number(c.limits.max_wait_seconds, t, 1, 3600); },
     [](C c) { return cat(c.limits.max_wait_seconds); }},
    {"limits.max_requests_per_key", "OPENSANDBOX_LIMITS_MAX_REQUESTS_PER_KEY", "max-requests-per-key", "whole number 1..1000000",
     "requests of one key over TCP at the same time, streams and terminals of its sandboxes among them", true,
     [](Config& c, View t) { return set_number(c.limits.max_requests_per_key, t, 1, 1'000'000); },
     [](C c) { return cat(c.limits.max_requests_per_key); }},
    {"limits.memory_reserve_percent", "OPENSANDBOX_LIMITS_MEMORY_RESERVE_PERCENT", "memory-reserve-percent", "whole number 0..99",
     "part of the host's memory that stays available; below it creates are refused", true,
     [](Config& c, View t) { return set_number(c.limits.memory_reserve_percent, t, 0, 99); },
     [](C c) { return cat(c.limits.memory_reserve_percent); }},
    {"limits.memory_overcommit_percent", "OPENSANDBOX_LIMITS_MEMORY_OVERCOMMIT_PERCENT", "memory-overcommit-percent",
     "whole number 1..1000000; unset = no bound", "what the memory limits of all sandboxes may add up to, as a part of the host's memory",
     true, [](Config& c, View t) { return set_optional_number(c.limits.memory_overcommit_percent, t, 1, 1'000'000); },
     [](C c) { return show_optional(c.limits.memory_overcommit_percent); }},
    {"limits.pids_reserve", "OPENSANDBOX_LIMITS_PIDS_RESERVE", "pids-reserve", "whole number 0..4194304",
     "process ids of the host that stay free; below it creates are refused", true,
     [](Config& c, View t) { return set_number(c.limits.pids_reserve, t, 0, 4'194'304); }, [](C c) { return cat(c.limits.pids_reserve); }},
    {"limits.disk_reserve_mb", "OPENSANDBOX_LIMITS_DISK_RESERVE_MB", "disk-reserve-mb", "whole number 0..16777216, MiB",
     "free space where the state directory is; below it creates are refused", true,
     [](Config& c, View t) { return set_number(c.limits.disk_reserve_mb, t, 0, 16 << 20); },
     [](C c) { return cat(c.limits.disk_reserve_mb); }},

    {"server.listen", "OPENSANDBOX_SERVER_LISTEN", "listen", "IP address", "address of the HTTP API", true,
     [](Config& c, View t) { return set_address(c.server.listen, t); }, [](C c) { return json_string(c.server.listen); }},
    {"server.port", "OPENSANDBOX_SERVER_PORT", "port", "whole number 0..65535; 0 picks a free one", "port of the HTTP API", true,
     [](Config& c, View t) { return set_number(c.server.port, t, 0, 65535); }, [](C c) { return cat(c.server.port); }},
    {"server.public_host", "OPENSANDBOX_SERVER_PUBLIC_HOST", "public-host", "host or host:port; empty = the Host header of the request",
     "what clients are told to connect to", true, [](Config& c, View t) { return set_host(c.server.public_host, t); },
     [](C c) { return json_string(c.server.public_host); }},
    {"server.max_sandbox_timeout_seconds", "OPENSANDBOX_SERVER_MAX_SANDBOX_TIMEOUT_SECONDS", "max-sandbox-timeout-seconds",
     "whole number 60..3162240000; unset = no cap", "longest lifetime a request may ask for; with a cap every request needs a timeout",
     true, [](Config& c, View t) { return set_cap(c.server.max_sandbox_timeout_seconds, t); },
     [](C c) { return c.server.max_sandbox_timeout_seconds ? cat(*c.server.max_sandbox_timeout_seconds) : std::string("null"); }},
    {"server.instance", "OPENSANDBOX_SERVER_INSTANCE", "instance", "1..32 of a-z, 0-9, '-'",
     "name of this server among several on one host", true, [](Config& c, View t) { return set_instance(c.server.instance, t); },
     [](C c) { return json_string(c.server.instance); }},

    {"grpc.enabled", "OPENSANDBOX_GRPC_ENABLED", "grpc-enabled", "true or false",
     "serve the session service over gRPC, in a program of its own", true, [](Config& c, View t) { return set_bool(c.grpc.enabled, t); },
     [](C c) { return cat(c.grpc.enabled); }},
    {"grpc.listen", "OPENSANDBOX_GRPC_LISTEN", "grpc-listen", "IP address", "address of the gRPC port; there is no TLS on it", true,
     [](Config& c, View t) { return set_address(c.grpc.listen, t); }, [](C c) { return json_string(c.grpc.listen); }},
    {"grpc.port", "OPENSANDBOX_GRPC_PORT", "grpc-port", "whole number 0..65535; 0 picks a free one", "the gRPC port", true,
     [](Config& c, View t) { return set_number(c.grpc.port, t, 0, 65535); }, [](C c) { return cat(c.grpc.port); }},
    {"grpc.max_connections", "OPENSANDBOX_GRPC_MAX_CONNECTIONS", "grpc-max-connections", "whole number 1..10000",
     "connections to the gRPC port at the same time; the others wait", true,
     [](Config& c, View t) { return set_number(c.grpc.max_connections, t, 1, 10'000); }, [](C c) { return cat(c.grpc.max_connections); }},
    {"grpc.max_streams", "OPENSANDBOX_GRPC_MAX_STREAMS", "grpc-max-streams", "whole number 1..10000",
     "gRPC calls of one connection at the same time", true, [](Config& c, View t) { return set_number(c.grpc.max_streams, t, 1, 10'000); },
     [](C c) { return cat(c.grpc.max_streams); }},
    {"grpc.max_calls", "OPENSANDBOX_GRPC_MAX_CALLS", "grpc-max-calls", "whole number 1..100000",
     "gRPC calls of all connections at the same time; the next one is refused", true,
     [](Config& c, View t) { return set_number(c.grpc.max_calls, t, 1, 100'000); }, [](C c) { return cat(c.grpc.max_calls); }},

    {"auth.api_key_file", "OPENSANDBOX_AUTH_API_KEY_FILE", "api-key-file", "absolute path; empty = <state_dir>/api-key",
     "file that holds the API key; made at first start", true, [](Config& c, View t) { return set_optional_path(c.auth.api_key_file, t); },
     [](C c) { return json_string(c.auth.api_key_file); }},
    {"auth.keys", "", "", "list of {name, key_file or sha256, sees_all}", "further keys, each with its own sandboxes", false, nullptr,
     show_keys},
    {"auth.insecure_no_auth", "OPENSANDBOX_AUTH_INSECURE_NO_AUTH", "insecure-no-auth", "true or false",
     "serve everybody who can connect, without any key", true, [](Config& c, View t) { return set_bool(c.auth.insecure_no_auth, t); },
     [](C c) { return cat(c.auth.insecure_no_auth); }},

    {"storage.state_dir", "OPENSANDBOX_STORAGE_STATE_DIR", "state-dir", "absolute path", "database, keys, images, audit log", true,
     [](Config& c, View t) { return set_path(c.storage.state_dir, t); }, [](C c) { return json_string(c.storage.state_dir); }},
    {"storage.run_dir", "OPENSANDBOX_STORAGE_RUN_DIR", "run-dir", "absolute path", "sockets and what belongs to the current boot", true,
     [](Config& c, View t) { return set_path(c.storage.run_dir, t); }, [](C c) { return json_string(c.storage.run_dir); }},
    {"storage.allowed_host_paths", "", "", "list of absolute paths", "host directories that sandboxes may mount; empty = none", false,
     nullptr, show_host_paths},
    {"storage.volume_default_mb", "OPENSANDBOX_STORAGE_VOLUME_DEFAULT_MB", "volume-default-mb", "integer 16..1048576 (MiB)",
     "size of a named volume whose request gives none", true,
     [](Config& c, View t) { return set_number(c.storage.volume_default_mb, t, 16, 1'048'576); },
     [](C c) { return cat(c.storage.volume_default_mb); }},

    {"process.workspace", "OPENSANDBOX_PROCESS_WORKSPACE", "process-workspace", "absolute path; empty = each sandbox its own, of memory",
     "directory of this host that every sandbox of the runtime process has as /workspace", true,
     [](Config& c, View t) { return set_optional_path(c.process.workspace, t); }, [](C c) { return json_string(c.process.workspace); }},

    {"audit.directory", "OPENSANDBOX_AUDIT_DIRECTORY", "audit-directory", "absolute path; empty = <state_dir>/audit",
     "where audit.jsonl is written", true, [](Config& c, View t) { return set_optional_path(c.audit.directory, t); },
     [](C c) { return json_string(c.audit.directory); }},

    {"images.aliases", "", "", "map of name: name", "images under further names", false, nullptr, show_aliases},
    {"images.pull", "OPENSANDBOX_IMAGES_PULL", "image-pull", "missing or never",
     "whether a request for an image that is not here pulls it from the registry its name says", true,
     [](Config& c, View t) { return set_pull(c.images.pull_missing, t); },
     [](C c) { return std::string(c.images.pull_missing ? "missing" : "never"); }},
    {"images.default_registry", "OPENSANDBOX_IMAGES_DEFAULT_REGISTRY", "default-registry",
     "host[:port][/prefix]; empty = names without a registry are not pulled", "where images come from whose name says no registry", true,
     [](Config& c, View t) { return set_registry(c.images.default_registry, t); },
     [](C c) { return json_string(c.images.default_registry); }},
    {"images.insecure_registries", "", "", "list of host or host:port",
     "registries that may speak plain http; those on this machine may always", false, nullptr,
     [](C c) { return show_list(c.images.insecure_registries); }},
    {"images.trusted_hosts", "", "", "list of host or host:port",
     "hosts a registry may send a pull or its credentials to although they are private or elsewhere", false, nullptr,
     [](C c) { return show_list(c.images.trusted_hosts); }},
    {"images.registries", "", "", "list of {host, username, password_file}", "logins for registries", false, nullptr, show_registries},
    {"images.ca_file", "OPENSANDBOX_IMAGES_CA_FILE", "image-ca-file", "absolute path; empty = the CAs of the system alone",
     "further CAs that registries may be signed by", true, [](Config& c, View t) { return set_optional_path(c.images.ca_file, t); },
     [](C c) { return json_string(c.images.ca_file); }},
    {"images.max_bytes", "OPENSANDBOX_IMAGES_MAX_BYTES", "image-max-bytes", "whole number 1048576..1125899906842624; unset = no bound",
     "what all images may take; past it the least recently used ones that no sandbox needs are removed", true,
     [](Config& c, View t) { return set_image_bytes(c.images.max_bytes, t); },
     [](C c) { return c.images.max_bytes ? cat(*c.images.max_bytes) : std::string("null"); }},

    {"command_policy.default", "OPENSANDBOX_COMMAND_POLICY_DEFAULT", "command-default", "allow, ask or deny",
     "what becomes of a command that no rule matches", true,
     [](Config& c, View t) { return set_action(c.command_policy.policy.otherwise, t); },
     [](C c) { return std::string(name_of(c.command_policy.policy.otherwise)); }},
    {"command_policy.unclear", "OPENSANDBOX_COMMAND_POLICY_UNCLEAR", "command-unclear", "allow, ask or deny",
     "what at most becomes of a command that cannot be read with certainty", true,
     [](Config& c, View t) { return set_action(c.command_policy.policy.unclear, t); },
     [](C c) { return std::string(name_of(c.command_policy.policy.unclear)); }},
    {"command_policy.ask_timeout_seconds", "OPENSANDBOX_COMMAND_POLICY_ASK_TIMEOUT_SECONDS", "ask-timeout-seconds", "whole number 1..3600",
     "how long a command waits for an answer", true,
     [](Config& c, View t) { return set_number(c.command_policy.ask_timeout_seconds, t, 1, kMaxAskSeconds); },
     [](C c) { return cat(c.command_policy.ask_timeout_seconds); }},
    {"command_policy.self_approval", "OPENSANDBOX_COMMAND_POLICY_SELF_APPROVAL", "self-approval", "privileged, always or never",
     "whether the key that runs a command may also answer for it", true,
     [](Config& c, View t) { return set_self_approval(c.command_policy.self_approval, t); },
     [](C c) { return std::string(name_of(c.command_policy.self_approval)); }},
    {"command_policy.rules", "", "", "list of {name, program, args_start, args_any, args_all, action, reason}",
     "commands by program and argument patterns; the first that matches decides", false, nullptr,
     [](C c) { return rules_json(c.command_policy.policy.rules); }},

    {"log.level", "OPENSANDBOX_LOG_LEVEL", "log-level", "debug, info, warn or error", "least important log line that is written", true,
     [](Config& c, View t) { return set_level(c.log.level, t); }, [](C c) { return show_level(c.log.level); }},
};

}  // namespace

std::span<const Option> options() { return kOptions; }

}  // namespace osb::daemon
