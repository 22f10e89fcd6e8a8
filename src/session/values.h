// What goes into and comes out of the session service: plain values, the same for every door (REST, gRPC, Connect).
// Meanings and bounds are those of spec/sessions.yaml.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/id.h"
#include "model/sandbox.h"

namespace osb::session {

struct ResourceRequest {
  std::optional<std::uint64_t> memory_mb;
  std::optional<double> cpu_cores;
  std::optional<std::uint64_t> disk_mb;
  std::optional<std::uint32_t> pids;
  std::optional<std::int64_t> timeout_seconds;
};

struct SecurityRequest {
  std::string syscall_allowlist;  // "" = the configuration's
  std::string network_policy;     // "" = deny_all
  std::optional<bool> read_only_root;
  std::string command_policy;  // JSON text; "" = none of its own
};

struct CreateRequest {
  std::string runtime;  // "" = the daemon's
  std::string image;    // "" = host
  ResourceRequest resources;
  SecurityRequest security;
  StringMap env;
  StringMap metadata;
  bool ephemeral = true;
};

// What it is now: the sandbox, and what is only a session's.
struct Session {
  Sandbox sandbox;
  bool ephemeral = true;
  std::string runtime = {};
  bool replayed = false;  // it was there already: the idempotency key had been used for the same request
  struct Usage {
    double cpu_seconds = 0;
    std::uint64_t memory_bytes = 0;
    std::uint64_t memory_peak_bytes = 0;
    std::uint64_t disk_bytes = 0;
    std::uint64_t pids = 0;
  };
  std::optional<Usage> usage = {};
};

struct SessionPage {
  std::vector<Session> sessions;
  std::size_t total = 0;
};

inline constexpr std::uint64_t kDefaultOutputBytes = 8u << 20;
inline constexpr std::uint64_t kMaxOutputBytes = 64u << 20;
inline constexpr double kMaxExecSeconds = 86400;
inline constexpr std::uint64_t kMaxInputBytes = 1u << 20;  // of an exec's standard input
inline constexpr std::size_t kMaxPath = 4096;

// Exactly one of command, argv and code.
struct ExecRequest {
  std::string command;            // a line for the shell
  std::vector<std::string> argv;  // a program as it is
  std::string code;
  std::string language;  // of `code`
  std::optional<double> timeout_seconds;
  std::optional<std::string> input;  // standard input, then its end
  std::string cwd;
  StringMap env;
};

enum class Cause : std::uint8_t { exited, signalled, timed_out, out_of_memory, interrupted, session_ended };
std::string_view name_of(Cause cause);

struct CodeError {
  std::string name;
  std::string value;
  std::vector<std::string> traceback;
};
struct CodeResult {
  StringMap data;  // by media type
};

// A question that waits for a person, and its answer.
struct Approval {
  std::string id;
  std::string session_id;
  std::string command;
  std::string rule;
  std::string reason;
  std::string state;
  std::string asked_by;
  WallTime asked_at;
  WallTime expires_at;
  std::string answered_by;
  std::optional<WallTime> answered_at;
  std::string comment;
};

// The events of a command, in the order they happened.
struct Started {
  std::string session_id;
  std::string exec_id;
};
struct Held {
  Approval approval;
};
struct Output {
  bool is_stderr = false;
  std::string bytes;
};
struct Lost {
  std::uint64_t events = 0;
};
struct Exit {
  int exit_code = 0;
  Cause cause = Cause::exited;
  std::string advice = {};
  double duration_ms = 0;
  std::optional<CodeError> error = {};
  bool timed_out() const { return cause == Cause::timed_out; }
};
// Nothing happened for a few seconds. Goes to EventSink::still(), never to take().
struct Silence {};
struct ExecEvent {
  std::uint64_t seq = 0;
  std::variant<Started, Held, Output, CodeResult, Lost, Exit, Silence> what;
};

struct FileInfo {
  std::string path;
  std::string type;  // file, directory, symlink, other
  std::uint64_t size = 0;
  std::uint32_t mode = 0;
  WallTime modified_at;
};

struct TerminalRequest {
  std::vector<std::string> argv = {};  // empty = a shell
  std::uint32_t columns = 80;
  std::uint32_t rows = 24;
  std::string cwd = {};
  StringMap env = {};
};

}  // namespace osb::session
