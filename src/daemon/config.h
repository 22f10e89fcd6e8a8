// Configuration: one struct per section, one table (config_table.cc) that makes the parser, --help and the docs.
//
// Precedence: flag > environment > file > built-in default. Unknown keys, wrong types and values out of bounds
// are errors that name the key, the value, the line and the way out; all problems of a file are told at once.
// Secrets come from files or, for the one server key, from the environment; never from the YAML text.
//
// To add a key: add the field here, one row to the table, one entry to deploy/sandbox-config.yaml (a test compares).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "model/command_policy.h"
#include "model/limits.h"
#include "model/places.h"
#include "model/policy.h"
#include "model/sandbox.h"

namespace osb::daemon {

// What a sandbox gets when its request does not say.
struct ResourcesConfig {
  std::uint64_t memory_mb = 512;  // MiB
  std::uint32_t cpu_millis = 1000;
  std::uint64_t disk_mb = 256;          // MiB
  std::int64_t timeout_seconds = 3600;  // for the CLI and sessions; an API request without timeout never expires
  std::uint32_t pids = 256;
};

struct SecurityConfig {
  SyscallProfile syscall_allowlist = SyscallProfile::standard;
  std::string network_policy = "deny_all";  // the only one so far
  bool read_only_root = true;
  UserMode mode = UserMode::user;
  bool allow_root_mode = true;
  bool allow_permissive = false;
};

struct SessionsConfig {
  bool ephemeral = true;  // nothing of a sandbox outlives it; the only choice so far
  std::uint64_t max_concurrent = 20'000;
  bool enabled = true;  // the session API, on a listener of its own
  std::string listen = "127.0.0.1";
  std::uint16_t port = 9111;                   // 0 = pick a free one
  std::uint64_t idle_seconds = 600;            // an ephemeral session that nobody uses ends after this
  bool require_key = false;                    // also of programs of root and of the daemon's own user
  std::vector<std::string> users_without_key;  // names or numbers, besides those two
  std::vector<std::string> allowed_origins;    // pages that may call: "http://localhost:5173"
};

// A named pool; amounts as the file writes them, "" = the default of a sandbox.
struct NamedPoolConfig {
  std::string name;
  std::string image;
  std::string cpu, memory, disk, pids;
  std::string mode, syscalls, root;
  std::uint32_t buffer_min = 0;
  std::uint32_t buffer_max = 0;
  std::uint32_t pool_min = 0;
  std::optional<std::uint32_t> pool_max;  // nullopt = as many as may be
};

// Sandboxes made ahead of time.
struct PoolConfig {
  bool automatic = true;  // by demand, for every shape that is asked for
  std::uint64_t max_spares = 64;
  std::optional<std::uint64_t> max_memory;  // bytes
  std::uint32_t parts = 8;                  // namespaces that the launcher keeps ready
};

// Before the host or the patience of other keys runs out, creates are refused (docs/operations.md, When much is asked).
struct LimitsConfig {
  std::optional<std::uint64_t> max_sandboxes_per_key;  // nullopt = as many as sessions.max_concurrent
  std::uint64_t max_creates_in_flight = 0;             // 0 = four for each cpu, at least 8
  std::uint64_t max_waiting_per_key = 256;
  std::uint64_t max_waiting = 1024;
  std::uint64_t max_wait_seconds = 10;
  std::uint64_t max_requests_per_key = 2048;
  std::uint64_t memory_reserve_percent = 10;
  std::optional<std::uint64_t> memory_overcommit_percent;  // nullopt = limits of sandboxes may add up to anything
  std::uint64_t pids_reserve = 1024;
  std::uint64_t disk_reserve_mb = 64;  // MiB
};

struct ServerConfig {
  std::string listen = "127.0.0.1";
  std::uint16_t port = 8080;  // 0 = pick a free one
  std::string public_host;    // authority in endpoint answers; "" = the Host of the request
  std::optional<std::int64_t> max_sandbox_timeout_seconds;
  std::string instance = "default";  // one run directory, one launcher
};

// gRPC for the session service: a program of its own, started only when it is asked for.
struct GrpcConfig {
  bool enabled = false;
  std::string listen = "127.0.0.1";
  std::uint16_t port = 9112;  // 0 = pick a free one
  std::uint32_t max_connections = 256;
  std::uint32_t max_streams = 100;  // of one connection
  std::uint32_t max_calls = 1024;   // of all
};

struct KeyConfig {
  std::string name;       // who this key is, in the audit log
  std::string key_file;   // exactly one of key_file and sha256
  std::string sha256;     // 64 hex digits: of the key's bytes
  bool sees_all = false;  // may see and change sandboxes of other keys
};

struct AuthConfig {
  std::string api_key_file;  // "" = <state_dir>/api-key, made at first start
  std::vector<KeyConfig> keys;
  bool insecure_no_auth = false;
  std::string api_key;  // only from OPENSANDBOX_SERVER_API_KEY; never rendered
};

struct StorageConfig {
  std::string state_dir = usual_state_dir();
  std::string run_dir = usual_run_dir();        // the instance's folder is <run_dir>/<instance>
  std::vector<std::string> allowed_host_paths;  // host volumes must lie in one of them; empty = there are none
  std::uint64_t volume_default_mb = 1024;       // MiB of a named volume whose request gives no size
};

// Of the runtime `process`.
struct ProcessConfig {
  std::string workspace;  // directory of the host that every sandbox has as /workspace; "" = each its own, of memory
};

// Which commands may run (docs/command-policy.md).
struct CommandPolicyConfig {
  CommandPolicy policy;
  std::uint32_t ask_timeout_seconds = 60;
  SelfApproval self_approval = SelfApproval::privileged;
};

struct AuditConfig {
  std::string directory;  // "" = <state_dir>/audit
};

struct RegistryConfig {
  std::string host;  // "host" or "host:port", as image names write it
  std::string username;
  std::string password_file;  // read when the daemon starts and when it is told to read its configuration again
};

struct ImagesConfig {
  StringMap aliases;  // name a client sends -> name we have; goes to lifecycle::Options::image_aliases
  bool pull_missing = true;
  std::string default_registry;  // "host[:port][/prefix]"; "" = names without a registry are not pulled
  std::vector<std::string> insecure_registries;
  std::vector<std::string> trusted_hosts;
  std::vector<RegistryConfig> registries;
  std::string ca_file;
  std::optional<std::uint64_t> max_bytes;
};

struct LogConfig {
  log::Level level = log::Level::info;
};

enum class Source : std::uint8_t { builtin, file, environment, flag };
std::string_view name_of(Source source);

struct Config {
  std::string runtime = "native";
  ResourcesConfig resources;
  SecurityConfig security;
  SessionsConfig sessions;
  PoolConfig pool;
  std::vector<NamedPoolConfig> pools;
  LimitsConfig limits;
  ServerConfig server;
  GrpcConfig grpc;
  AuthConfig auth;
  StorageConfig storage;
  ProcessConfig process;
  AuditConfig audit;
  CommandPolicyConfig command_policy;
  ImagesConfig images;
  LogConfig log;

  std::map<std::string, Source, std::less<>> sources;  // by yaml path; absent = builtin
  std::string file;                                    // the file that was read, "" = none

  // What follows from more than one key.
  Limits default_limits() const;
  Policy default_policy() const;
  std::string api_key_file() const;     // auth.api_key_file or <state_dir>/api-key
  std::string audit_directory() const;  // audit.directory or <state_dir>/audit
  std::string instance_dir() const;     // <run_dir>/<instance>
};

// One row of the table. A scalar can be set from all three places; lists and maps (is_scalar false) only in the file.
struct Option {
  std::string_view path;   // "resources.memory_mb"
  std::string_view env;    // "OPENSANDBOX_RESOURCES_MEMORY_MB"
  std::string_view flag;   // "memory-mb", used as --memory-mb; "" = none
  std::string_view value;  // shape and bounds, for people: "integer 16..1048576 (MiB)"
  std::string_view help;
  bool is_scalar = true;
  Result<> (*set)(Config&, std::string_view) = nullptr;  // null for lists and maps
  std::string (*show)(const Config&) = nullptr;          // as YAML scalar or flow text; never a secret
};
std::span<const Option> options();

struct Inputs {
  std::optional<std::string> file;                               // a named file must exist
  std::vector<std::pair<std::string, std::string>> environment;  // NAME, value; names we do not know are ignored
  std::vector<std::pair<std::string, std::string>> flags;        // "memory-mb", "512"; unknown = error
};

// Reads, merges, checks. Errc::invalid_argument; several problems are separated by newlines in what().
Result<Config> load(const Inputs& inputs);
// The NAME=value pairs of this process, for Inputs::environment.
std::vector<std::pair<std::string, std::string>> process_environment();

// Of a name or a number; nullopt when this machine knows no such user.
std::optional<std::uint32_t> uid_of(const std::string& user);

std::string render(const Config& config);  // effective configuration as YAML, each line with its source
std::string help_text();                   // flags, environment names, defaults
std::string markdown();                    // docs/config.md

}  // namespace osb::daemon
