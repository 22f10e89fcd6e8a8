#include "api/rpc/convert.h"

#include <cstdio>

#include "api/sessions/render.h"
#include "base/text.h"
#include "session/plan.h"

namespace osb::api::rpc {
namespace {

session::ResourceRequest to_resources(const std::optional<Resources>& message) {
  session::ResourceRequest value;
  if (!message) return value;
  value.memory_mb = message->memory_mb;
  value.cpu_cores = message->cpu_cores;
  value.disk_mb = message->disk_mb;
  value.pids = message->pids;
  value.timeout_seconds = message->timeout_seconds;
  return value;
}

session::SecurityRequest to_security(std::optional<Security> message) {
  session::SecurityRequest value;
  if (!message) return value;
  value.syscall_allowlist = std::move(message->syscall_allowlist);
  value.network_policy = std::move(message->network_policy);
  value.read_only_root = message->read_only_root;
  value.command_policy = std::move(message->command_policy_json);
  return value;
}

Resources resources_of(const SandboxSpec& spec) {
  Resources out;
  out.memory_mb = spec.limits.memory_bytes >> 20;
  out.cpu_cores = spec.limits.cpu_millis / 1000.0;
  out.disk_mb = spec.limits.disk_bytes >> 20;
  out.pids = spec.limits.pids;
  out.timeout_seconds = spec.timeout_seconds;
  return out;
}

Security security_of(const SandboxSpec& spec) {
  Security out;
  out.syscall_allowlist = name_of(spec.policy.syscalls);
  out.network_policy = "deny_all";
  out.read_only_root = spec.policy.root == RootMode::read_only;
  return out;
}

Started from(session::Started value) { return {std::move(value.session_id), std::move(value.exec_id)}; }

}  // namespace

Result<SandboxId> to_session_id(std::string_view text) {
  if (auto id = SandboxId::parse(text)) return *id;
  return Error(Errc::not_found, cat("There is no session ", text.substr(0, 64), ".")).with_code("SESSION::NOT_FOUND").at("session_id");
}

session::CreateRequest to_create(CreateSessionRequest message) {
  session::CreateRequest value;
  value.runtime = std::move(message.runtime);
  value.image = std::move(message.image);
  value.resources = to_resources(message.resources);
  value.security = to_security(std::move(message.security));
  value.env = std::move(message.env);
  value.metadata = std::move(message.metadata);
  value.ephemeral = message.ephemeral.value_or(true);
  return value;
}

session::ExecRequest to_exec(ExecRequest message) {
  session::ExecRequest value;
  value.command = std::move(message.command);
  value.argv = std::move(message.argv);
  value.timeout_seconds = message.timeout_seconds;
  value.input = std::move(message.input);
  value.cwd = std::move(message.cwd);
  value.env = std::move(message.env);
  return value;
}

session::ExecRequest to_exec(CodeRequest message) {
  session::ExecRequest value;
  value.code = std::move(message.code);
  value.language = std::move(message.language);
  value.timeout_seconds = message.timeout_seconds;
  return value;
}

session::TerminalRequest to_terminal(TerminalOpen message) {
  session::TerminalRequest value;
  value.argv = std::move(message.argv);
  if (message.columns > 0) value.columns = message.columns;
  if (message.rows > 0) value.rows = message.rows;
  value.cwd = std::move(message.cwd);
  value.env = std::move(message.env);
  return value;
}

Result<std::uint64_t> to_output_bound(std::optional<std::uint64_t> asked) {
  auto bound = asked.value_or(kDefaultAnswerBytes);
  if (bound > session::kMaxOutputBytes) return session::invalid("max_output_bytes", cat("must be from 0 to ", session::kMaxOutputBytes));
  return bound;
}

Result<std::uint32_t> to_mode(std::string_view octal) {
  if (octal.empty()) return 0644u;
  std::uint32_t mode = 0;
  for (char c : octal) {
    if (c < '0' || c > '7' || octal.size() < 3 || octal.size() > 4)
      return session::invalid("mode", "must be three or four octal digits, such as 644");
    mode = mode * 8 + static_cast<std::uint32_t>(c - '0');
  }
  return mode;
}

Result<bool> to_answer(std::string_view answer) {
  if (answer != "allow" && answer != "deny") return session::invalid("answer", "must be allow or deny");
  return answer == "allow";
}

Session from(const session::Session& value) {
  const auto& sandbox = value.sandbox;
  Session out;
  out.session_id = sandbox.id.text();
  out.state = sessions::state_name(sandbox.status.state);
  if (sandbox.status.state != State::running) {
    out.reason = sandbox.status.reason;
    out.message = sandbox.status.message;
  }
  out.runtime = value.runtime;
  out.image = sandbox.spec.image;
  out.ephemeral = value.ephemeral;
  out.created_at = to_timestamp(sandbox.created_at);
  if (sandbox.expires_at) out.expires_at = to_timestamp(*sandbox.expires_at);
  out.resources = resources_of(sandbox.spec);
  out.security = security_of(sandbox.spec);
  out.metadata = sandbox.spec.metadata;
  if (value.usage)
    out.usage = Usage{value.usage->cpu_seconds, value.usage->memory_bytes, value.usage->memory_peak_bytes, value.usage->disk_bytes,
                      value.usage->pids};
  return out;
}

ExecEnd from(session::Exit value) {
  ExecEnd out;
  out.exit_code = value.exit_code;
  out.cause = session::name_of(value.cause);
  out.timed_out = value.timed_out();
  out.advice = std::move(value.advice);
  out.duration_ms = value.duration_ms;
  if (value.error) out.error = CodeError{std::move(value.error->name), std::move(value.error->value), std::move(value.error->traceback)};
  return out;
}

Approval from(session::Approval value) {
  Approval out;
  out.id = std::move(value.id);
  out.session_id = std::move(value.session_id);
  out.command = std::move(value.command);
  out.rule = std::move(value.rule);
  out.reason = std::move(value.reason);
  out.state = std::move(value.state);
  out.asked_by = std::move(value.asked_by);
  out.asked_at = to_timestamp(value.asked_at);
  out.expires_at = to_timestamp(value.expires_at);
  out.answered_by = std::move(value.answered_by);
  if (value.answered_at) out.answered_at = to_timestamp(*value.answered_at);
  out.comment = std::move(value.comment);
  return out;
}

FileInfo from(session::FileInfo value) {
  char mode[16];
  std::snprintf(mode, sizeof mode, "%03o", value.mode & 07777);
  return {std::move(value.path), std::move(value.type), value.size, mode, to_timestamp(value.modified_at)};
}

ExecEvent from(session::ExecEvent value) {
  ExecEvent out;
  out.seq = value.seq;
  if (auto* started = std::get_if<session::Started>(&value.what)) out.started = from(std::move(*started));
  if (auto* held = std::get_if<session::Held>(&value.what)) out.held = from(std::move(held->approval));
  if (auto* output = std::get_if<session::Output>(&value.what)) (output->is_stderr ? out.err : out.out) = std::move(output->bytes);
  if (auto* result = std::get_if<session::CodeResult>(&value.what)) out.result = CodeResult{std::move(result->data)};
  if (auto* lost = std::get_if<session::Lost>(&value.what)) out.lost = lost->events;
  if (auto* end = std::get_if<session::Exit>(&value.what)) out.exit = from(std::move(*end));
  return out;
}

}  // namespace osb::api::rpc
