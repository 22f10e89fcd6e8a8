#include "session/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/sha256.h"
#include "base/text.h"
#include "model/command_policy.h"
#include "model/create_request.h"
#include "model/json.h"

namespace osb::session {
namespace {

constexpr std::string_view kInvalid = "SESSION::INVALID_PARAMETER";
constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::size_t kMaxWord = 128 * 1024 - 1;  // what one argument of execve(2) may hold
constexpr std::size_t kMaxWords = 1000;
constexpr std::size_t kMaxCode = 512 * 1024;
constexpr std::uint32_t kMaxSide = 0xFFFF;

// Errors of the shared checks, with the names this API gives things.
Error renamed(Error error) {
  std::string field = error.field() == "image.uri" ? "image" : error.field();
  std::string what = error.what();
  if (what.starts_with("image.uri")) what = cat("image", what.substr(9));
  auto hint = error.hint();
  return Error(error.kind(), std::move(what)).with_code(kInvalid).at(field).with_hint(hint);
}

bool same_runtime(std::string_view asked, std::string_view ours) { return asked == ours || (asked == "subprocess" && ours == "process"); }

Result<> check_runtime(const CreateRequest& request, const Rules& rules) {
  if (request.runtime.empty() || same_runtime(request.runtime, rules.runtime)) return Ok{};
  return Error(Errc::invalid_argument, cat("runtime: this daemon runs ", rules.runtime, ", not ", request.runtime.substr(0, 64)))
      .with_code("RUNTIME::NOT_AVAILABLE")
      .at("runtime")
      .with_hint(cat("Leave runtime out, ask for \"", rules.runtime, "\", or start a daemon with the other one."));
}

template <class N>
Result<> within(std::string_view field, const std::optional<N>& value, N least, N most) {
  if (!value || (*value >= least && *value <= most)) return Ok{};
  return invalid(field, cat("must be from ", least, " to ", most));
}

Result<> set_limits(const ResourceRequest& asked, Limits& limits) {
  CHECK_OK(within<std::uint64_t>("resources.memory_mb", asked.memory_mb, 16, 1048576));
  CHECK_OK(within<std::uint64_t>("resources.disk_mb", asked.disk_mb, 1, 16777216));
  CHECK_OK(within<std::uint32_t>("resources.pids", asked.pids, 8, 32768));
  // Written so that NaN does not pass.
  if (asked.cpu_cores && !(*asked.cpu_cores >= 0.01 && *asked.cpu_cores <= 1024))
    return invalid("resources.cpu_cores", "must be from 0.01 to 1024");
  if (asked.memory_mb) limits.memory_bytes = *asked.memory_mb * kMiB;
  if (asked.disk_mb) limits.disk_bytes = *asked.disk_mb * kMiB;
  if (asked.pids) limits.pids = *asked.pids;
  if (asked.cpu_cores) limits.cpu_millis = static_cast<std::uint32_t>(std::lround(*asked.cpu_cores * 1000));
  return Ok{};
}

Result<std::int64_t> lifetime(const ResourceRequest& asked, const Rules& rules) {
  auto most = rules.max_timeout_seconds.value_or(kMaxTimeoutSeconds);
  if (!asked.timeout_seconds) return std::min(rules.timeout_seconds, most);
  if (*asked.timeout_seconds < 1) return invalid("resources.timeout_seconds", "must be at least 1");
  if (*asked.timeout_seconds > most) return invalid("resources.timeout_seconds", cat("this server allows at most ", most));
  return *asked.timeout_seconds;
}

Result<> set_policy(const SecurityRequest& asked, const Rules& rules, Policy& policy) {
  if (!asked.network_policy.empty() && asked.network_policy != "deny_all")
    return Error(Errc::invalid_argument, cat("security.network_policy: ", json_string(asked.network_policy.substr(0, 64)),
                                             " is not available; sandboxes have no network"))
        .with_code("SECURITY::NETWORK_POLICY_UNSUPPORTED")
        .at("security.network_policy")
        .with_hint("Use \"deny_all\" or leave it out; copy what the code needs in as files.");
  if (!asked.syscall_allowlist.empty()) {
    auto profile = parse_syscall_profile(asked.syscall_allowlist);
    if (!profile) return invalid("security.syscall_allowlist", "must be minimal, default or permissive");
    policy.syscalls = *profile;
  }
  if (policy.syscalls == SyscallProfile::permissive && !rules.allow_permissive)
    return invalid("security.syscall_allowlist", "permissive is switched off on this server (security.allow_permissive)");
  if (asked.read_only_root) policy.root = *asked.read_only_root ? RootMode::read_only : RootMode::writable;
  return Ok{};
}

// Kept as it was sent; the gate before every command reads it again.
Result<> set_command_policy(const SecurityRequest& asked, SandboxSpec& spec) {
  if (asked.command_policy.empty()) return Ok{};
  auto policy = parse_command_policy(std::string_view(asked.command_policy));
  if (!policy) {
    auto field = policy.error().field().empty() ? std::string() : cat(".", policy.error().field());
    return invalid(cat("security.command_policy", field), policy.error().what());
  }
  spec.extensions.emplace(kPolicyExtension, asked.command_policy);
  return Ok{};
}

bool has_nul(std::string_view text) { return text.find('\0') != text.npos; }

Result<> check_word(std::string_view field, std::string_view word) {
  if (has_nul(word)) return invalid(field, "contains a NUL character");
  if (word.size() <= kMaxWord) return Ok{};
  return invalid(field, cat("is longer than ", kMaxWord, " bytes; upload a script and run that"));
}

Result<> check_words(std::string_view field, const std::vector<std::string>& words) {
  if (words.size() > kMaxWords) return invalid(field, cat("has more than ", kMaxWords, " items"));
  if (!words.empty() && words.front().empty()) return invalid(field, "its first item must name a program");
  std::size_t bytes = 0;
  for (const auto& word : words) {
    CHECK_OK(check_word(field, word));
    bytes += word.size() + 1;
  }
  if (bytes > 4 * kMaxWord) return invalid(field, "is too long in all; upload a file with the arguments");
  return Ok{};
}

Result<> check_place(const std::string& cwd, const StringMap& env) {
  if (cwd.size() > kMaxPath || has_nul(cwd)) return invalid("cwd", "is not a path");
  if (auto fine = check_environment(env); !fine) return renamed(std::move(fine).error());
  return Ok{};
}

void add(std::string& out, std::string_view text) {
  append(out, text.size());
  out += ':';
  out += text;
}
void add(std::string& out, const StringMap& map) { append_json_map(out, map); }
void add(std::string& out, const std::optional<double>& number) {
  char digits[40] = "-";
  if (number) std::snprintf(digits, sizeof digits, "%.17g", *number);
  add(out, std::string_view(digits));
}
template <std::integral N>
void add(std::string& out, const std::optional<N>& number) {
  add(out, number ? std::string_view(cat(*number)) : std::string_view("-"));
}

std::string words_of(const CreateRequest& request) {
  std::string out = "create 1 ";
  add(out, request.runtime);
  add(out, request.image);
  add(out, request.resources.memory_mb);
  add(out, request.resources.cpu_cores);
  add(out, request.resources.disk_mb);
  add(out, request.resources.pids);
  add(out, request.resources.timeout_seconds);
  add(out, request.security.syscall_allowlist);
  add(out, request.security.network_policy);
  add(out, request.security.read_only_root);
  add(out, request.security.command_policy);
  add(out, request.env);
  add(out, request.metadata);
  add(out, request.ephemeral ? "ephemeral" : "kept");
  return out;
}

}  // namespace

Error invalid(std::string_view field, std::string_view why) {
  return Error(Errc::invalid_argument, cat(field, ": ", why)).with_code(kInvalid).at(field);
}

Result<SandboxSpec> plan(const CreateRequest& request, const Rules& rules) {
  CHECK_OK(check_runtime(request, rules));
  SandboxSpec spec;
  spec.limits = rules.limits;
  spec.policy = rules.policy;
  auto image = check_image_reference(request.image.empty() ? std::string("host") : request.image);
  if (!image) return renamed(std::move(image).error());
  spec.image = *std::move(image);
  CHECK_OK(set_limits(request.resources, spec.limits));
  CHECK_OK(set_policy(request.security, rules, spec.policy));
  TRY(spec.timeout_seconds, lifetime(request.resources, rules));
  if (auto fine = check_environment(request.env); !fine) return renamed(std::move(fine).error());
  if (auto fine = check_labels(request.metadata); !fine) return renamed(std::move(fine).error());
  spec.env = request.env;
  spec.metadata = request.metadata;
  spec.extensions.emplace(kMark, request.ephemeral ? kEphemeral : kKept);
  CHECK_OK(set_command_policy(request.security, spec));
  return spec;
}

Result<> check(const ExecRequest& request) {
  int kinds = !request.command.empty() + !request.argv.empty() + !request.code.empty();
  if (kinds != 1) return invalid(request.language.empty() ? "command" : "code", "is required and must not be empty");
  CHECK_OK(check_word("command", request.command));
  CHECK_OK(check_words("command", request.argv));
  if (!request.code.empty() && (request.language.empty() || request.language.size() > 64))
    return invalid("language", "is required, such as python, javascript or bash");
  if (request.code.size() > kMaxCode) return invalid("code", cat("is longer than ", kMaxCode, " bytes; upload it as a file and run that"));
  if (request.timeout_seconds && !(*request.timeout_seconds > 0 && *request.timeout_seconds <= kMaxExecSeconds))
    return invalid("timeout_seconds", "must be more than 0 and at most 86400");
  if (request.input && request.input->size() > kMaxInputBytes)
    return Error(Errc::too_large, cat("stdin: has more than ", kMaxInputBytes, " bytes"))
        .with_code(kInvalid)
        .at("stdin")
        .with_hint("Upload it as a file and redirect that: command < file.");
  return check_place(request.cwd, request.env);
}

Result<> check(const TerminalRequest& request) {
  CHECK_OK(check_words("argv", request.argv));
  if (request.columns < 1 || request.columns > kMaxSide) return invalid("columns", cat("must be from 1 to ", kMaxSide));
  if (request.rows < 1 || request.rows > kMaxSide) return invalid("rows", cat("must be from 1 to ", kMaxSide));
  return check_place(request.cwd, request.env);
}

Result<> check_path(const std::string& path) {
  if (path.empty()) return invalid("path", "is required");
  if (path.size() > kMaxPath) return invalid("path", cat("is longer than ", kMaxPath, " bytes"));
  if (has_nul(path)) return invalid("path", "contains a NUL character");
  return Ok{};
}

std::string fingerprint(const CreateRequest& request) { return sha256_hex(words_of(request)); }

std::string fingerprint(const CreateRequest& session, const ExecRequest& request) {
  std::string out = words_of(session) + "run 1 ";
  add(out, request.command);
  for (const auto& word : request.argv) add(out, word);
  add(out, request.timeout_seconds);
  add(out, request.input ? std::string_view(*request.input) : std::string_view("-"));
  add(out, request.cwd);
  add(out, request.env);
  return sha256_hex(out);
}

}  // namespace osb::session
