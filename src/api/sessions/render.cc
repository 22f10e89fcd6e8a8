#include "api/sessions/render.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "api/json_text.h"
#include "api/render.h"
#include "base/base64.h"
#include "base/text.h"
#include "http/websocket.h"
#include "lifecycle/admission.h"
#include "model/command_policy.h"
#include "model/json.h"

namespace osb::api::sessions {
namespace {

// Enough digits for times and shares, never an exponent a person must decode.
std::string decimal(double number) {
  char digits[64];
  auto end = std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed, 3).ptr;
  std::string_view text(digits, static_cast<std::size_t>(end - digits));
  while (text.ends_with('0')) text.remove_suffix(1);
  if (text.ends_with('.')) text.remove_suffix(1);
  return std::string(text);
}

std::string resources_json(const SandboxSpec& spec) {
  ObjectText text;
  text.add("memory_mb", spec.limits.memory_bytes >> 20).raw("cpu_cores", decimal(spec.limits.cpu_millis / 1000.0));
  text.add("disk_mb", spec.limits.disk_bytes >> 20).add("pids", spec.limits.pids);
  if (spec.timeout_seconds) text.add("timeout_seconds", *spec.timeout_seconds);
  return std::move(text).done();
}

std::string security_json(const SandboxSpec& spec) {
  ObjectText text;
  text.add("syscall_allowlist", name_of(spec.policy.syscalls)).add("network_policy", "deny_all");
  text.add("read_only_root", spec.policy.root == RootMode::read_only);
  if (auto policy = spec.extensions.find(kPolicyExtension); policy != spec.extensions.end()) text.raw("command_policy", policy->second);
  return std::move(text).done();
}

std::string usage_json(const session::Session::Usage& usage) {
  ObjectText text;
  text.raw("cpu_seconds", decimal(usage.cpu_seconds)).add("memory_bytes", usage.memory_bytes);
  text.add("memory_peak_bytes", usage.memory_peak_bytes).add("disk_bytes", usage.disk_bytes).add("pids", usage.pids);
  return std::move(text).done();
}

std::string code_error_json(const session::CodeError& error) {
  ObjectText text;
  text.add("name", error.name).add("value", error.value);
  if (!error.traceback.empty()) append_json_list(text.key("traceback"), error.traceback);
  return std::move(text).done();
}

std::string code_result_json(const session::CodeResult& result) {
  ObjectText text;
  append_json_map(text.key("data"), result.data);
  return std::move(text).done();
}

void add_end(ObjectText& text, const session::Exit& exit) {
  text.add("exit_code", exit.exit_code).add("cause", session::name_of(exit.cause)).add("timed_out", exit.timed_out());
  text.add_unless_empty("advice", exit.advice).raw("duration_ms", decimal(exit.duration_ms));
  if (exit.error) text.raw("error", code_error_json(*exit.error));
}

// What is about our own inside is told by a fixed sentence; the log has the rest under the request's id.
std::string_view fixed_sentence(const Error& error) {
  bool ours = error.code().empty() || error.code().starts_with("GENERAL::") || error.code().starts_with("DOCKER::");
  if (!ours || lifecycle::retry_after_seconds(error.code()) > 0) return {};
  if (error.kind() == Errc::unavailable) return "A part of the server that is needed for this is not available right now.";
  if (error.kind() == Errc::timeout) return "The server did not finish this in time.";
  if (error.kind() == Errc::internal) return "The server failed to do this; its log tells why.";
  return {};
}

std::string_view usual_code(Errc kind) {
  switch (kind) {
    case Errc::not_found: return "SESSION::NOT_FOUND";
    case Errc::conflict: return "SESSION::CONFLICT";
    case Errc::unauthenticated: return "INVALID_API_KEY";
    case Errc::permission_denied: return "GENERAL::PERMISSION_DENIED";
    case Errc::too_large: return "SESSION::TOO_LARGE";
    case Errc::exhausted: return "SESSION::TOO_MANY";
    case Errc::unavailable: return "GENERAL::UNAVAILABLE";
    case Errc::unsupported: return "SESSION::UNSUPPORTED";
    case Errc::timeout: return "GENERAL::TIMEOUT";
    case Errc::internal: return "GENERAL::UNKNOWN_ERROR";
    case Errc::invalid_argument:
    case Errc::malformed: break;
  }
  return "SESSION::INVALID_PARAMETER";
}

struct AsEvent {
  ObjectText& text;
  void operator()(const session::Started& started) const { text.add("session_id", started.session_id).add("exec_id", started.exec_id); }
  void operator()(const session::Held& held) const { text.raw("approval", approval_json(held.approval)); }
  void operator()(const session::Output& output) const {
    if (http::is_utf8(output.bytes))
      text.add("data", output.bytes);
    else
      text.add("data_base64", base64(output.bytes));
  }
  void operator()(const session::CodeResult& result) const { text.raw("result", code_result_json(result)); }
  void operator()(const session::Lost& lost) const { text.add("lost", lost.events); }
  void operator()(const session::Exit& exit) const {
    ObjectText end;
    add_end(end, exit);
    text.raw("exit", std::move(end).done());
  }
  void operator()(const session::Silence&) const {}
};

}  // namespace

int status_of(const Error& error) {
  if (error.code() == "SESSION::ENDED") return 410;
  if (error.code() == "FILE::NO_SPACE") return 507;
  return api::status_of(error.kind());
}

std::string_view state_name(State state) {
  switch (state) {
    case State::pending: return "pending";
    case State::running:
    case State::pausing:
    case State::resuming: return "running";
    case State::paused: return "paused";
    case State::stopping: return "ending";
    case State::terminated: return "ended";
    case State::failed: return "failed";
  }
  return "failed";
}

std::string_view code_of(const Error& error) { return error.code().empty() ? usual_code(error.kind()) : std::string_view(error.code()); }

std::string_view message_of(const Error& error) {
  auto sentence = fixed_sentence(error);
  std::string_view message = sentence.empty() ? std::string_view(error.what()) : sentence;
  return message.empty() ? std::string_view("The request failed.") : message;
}

std::string error_json(const Error& error, std::string_view request_id) {
  ObjectText text;
  text.add("code", code_of(error)).add("message", message_of(error));
  // A refused command names the rule where others name the field at fault.
  bool by_rule = error.code().starts_with("COMMAND::") && error.kind() == Errc::permission_denied;
  text.add_unless_empty(by_rule ? "rule" : "field", error.field())
      .add_unless_empty("advice", error.hint())
      .add_unless_empty("request_id", request_id);
  return std::move(text).done();
}

http::Response render(const Error& error, std::string_view request_id) {
  int status = status_of(error);
  auto response = http::Response::json(status, error_json(error, request_id));
  if (status == 429 || status == 503) response.headers.add("Retry-After", cat(std::max(1, lifecycle::retry_after_seconds(error.code()))));
  return response;
}

std::string session_json(const session::Session& session) {
  const auto& sandbox = session.sandbox;
  ObjectText text;
  text.add("session_id", sandbox.id.text()).add("state", state_name(sandbox.status.state));
  bool plain = sandbox.status.state == State::running;
  if (!plain) text.add_unless_empty("reason", sandbox.status.reason).add_unless_empty("message", sandbox.status.message);
  text.add("runtime", session.runtime).add("image", sandbox.spec.image).add("ephemeral", session.ephemeral);
  text.add("created_at", format_rfc3339(sandbox.created_at));
  if (sandbox.expires_at) text.add("expires_at", format_rfc3339(*sandbox.expires_at));
  text.raw("resources", resources_json(sandbox.spec)).raw("security", security_json(sandbox.spec));
  if (!sandbox.spec.metadata.empty()) append_json_map(text.key("metadata"), sandbox.spec.metadata);
  if (session.usage) text.raw("usage", usage_json(*session.usage));
  return std::move(text).done();
}

std::string page_json(const session::SessionPage& page) {
  ObjectText text;
  auto& out = text.key("sessions");
  out += '[';
  for (const auto& session : page.sessions) {
    if (out.back() != '[') out += ',';
    out += session_json(session);
  }
  out += ']';
  text.add("total", page.total);
  return std::move(text).done();
}

std::string result_json(const session::Collector& taken) {
  ObjectText text;
  text.add("session_id", taken.session_id).add("exec_id", taken.exec_id).add("stdout", taken.out).add("stderr", taken.err);
  if (taken.out_truncated) text.add("stdout_truncated", true);
  if (taken.err_truncated) text.add("stderr_truncated", true);
  add_end(text, taken.exit.value_or(session::Exit{}));
  if (taken.results.empty()) return std::move(text).done();
  auto& out = text.key("results");
  out += '[';
  for (const auto& result : taken.results) {
    if (out.back() != '[') out += ',';
    out += code_result_json(result);
  }
  out += ']';
  return std::move(text).done();
}

std::string event_name(const session::ExecEvent& event) {
  static constexpr std::string_view kNames[] = {"started", "held", "stdout", "result", "lost", "exit", "silence"};
  const auto* output = std::get_if<session::Output>(&event.what);
  return std::string(output && output->is_stderr ? "stderr" : kNames[event.what.index()]);
}

std::string event_json(const session::ExecEvent& event) {
  ObjectText text;
  text.add("type", event_name(event)).add("seq", event.seq);
  std::visit(AsEvent{text}, event.what);
  return std::move(text).done();
}

std::string file_json(const session::FileInfo& info) {
  char mode[16];
  std::snprintf(mode, sizeof mode, "%03o", info.mode);
  ObjectText text;
  text.add("path", info.path).add("type", info.type).add("size", info.size).add("mode", std::string_view(mode));
  text.add("modified_at", format_rfc3339(info.modified_at));
  return std::move(text).done();
}

std::string directory_json(const std::vector<session::FileInfo>& entries) {
  ObjectText text;
  auto& out = text.key("entries");
  out += '[';
  for (const auto& entry : entries) {
    if (out.back() != '[') out += ',';
    out += file_json(entry);
  }
  out += ']';
  return std::move(text).done();
}

std::string approval_json(const session::Approval& approval) {
  ObjectText text;
  text.add("id", approval.id).add("session_id", approval.session_id).add("command", approval.command).add("rule", approval.rule);
  text.add_unless_empty("reason", approval.reason).add("state", approval.state).add_unless_empty("asked_by", approval.asked_by);
  text.add("asked_at", format_rfc3339(approval.asked_at)).add("expires_at", format_rfc3339(approval.expires_at));
  text.add_unless_empty("answered_by", approval.answered_by);
  if (approval.answered_at) text.add("answered_at", format_rfc3339(*approval.answered_at));
  text.add_unless_empty("comment", approval.comment);
  return std::move(text).done();
}

}  // namespace osb::api::sessions
