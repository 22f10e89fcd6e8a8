// GET /sandboxes/{id}/diagnostics/...: with a scope the object published clients read, without one the older plain text.
#include <algorithm>
#include <chrono>

#include "api/json_text.h"
#include "api/v1/diagnosis.h"
#include "api/v1/handlers.h"
#include "model/json.h"

namespace osb::api::v1 {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);  // with a sandbox that does not answer
constexpr std::size_t kOutputBytes = 1024 * 1024;
constexpr std::size_t kLongestUnit = 1;

struct Question {
  std::optional<DiagnosisScope> scope;  // none: the plain text
  std::size_t lines = 100;
  std::size_t events = 50;
};

Error bad(std::string_view name, std::string words) {
  return Error(Errc::invalid_argument, std::move(words)).with_code("SANDBOX::INVALID_PARAMETER").at(name);
}

Result<std::size_t> number_in(std::string_view name, std::string_view text, std::size_t most) {
  auto number = parse_int<std::size_t>(text);
  if (number && *number >= 1 && *number <= most) return *number;
  return bad(name, cat(name, " must be a whole number from 1 to ", most, "."));
}

// "30s", "10m", "1h", "2d". Lines carry no time, so it is checked and every line kept is recent enough.
Result<> check_since(std::string_view text) {
  bool fine = text.size() > kLongestUnit && std::string_view("smhd").find(text.back()) != std::string_view::npos;
  if (fine && parse_int<std::uint32_t>(text.substr(0, text.size() - kLongestUnit)).value_or(0) > 0) return Ok{};
  return bad("since", "since must be a time span like 30s, 10m or 1h.");
}

Result<Question> parse_question(std::string_view raw_query, DiagnosisKind kind) {
  Question out;
  if (kind == DiagnosisKind::summary) out = {std::nullopt, 50, 20};
  TRY(auto pairs, http::parse_query(raw_query));
  for (const auto& [name, value] : pairs) {
    if (name == "scope") {
      out.scope = parse_scope(value);
      if (!out.scope) return bad("scope", "scope must be all, container, lifecycle, runtime, network or process.");
    } else if (name == "tail") {
      TRY(out.lines, number_in(name, value, 10'000));
    } else if (name == "limit" || name == "event_limit") {
      TRY(out.events, number_in(name, value, 500));
    } else if (name == "since") {
      CHECK_OK(check_since(value));
    }
  }
  return out;
}

bool needs_output(DiagnosisKind kind, DiagnosisScope scope) {
  bool told = kind == DiagnosisKind::logs || kind == DiagnosisKind::summary;
  return told && (scope == DiagnosisScope::all || scope == DiagnosisScope::container);
}

bool needs_processes(DiagnosisScope scope) { return scope == DiagnosisScope::all || scope == DiagnosisScope::process; }

// A question to execd of a running sandbox: hostile, so bounded in time and size.
Task<std::optional<http::ClientResponse>> ask_execd(Context& context, SandboxId id, std::string path) {
  http::ClientRequest request;
  request.target = std::move(path);
  auto reply = co_await http::fetch(context.lifecycle.runtime().execd(id), std::move(request), kPatience, kOutputBytes);
  if (!reply || reply->status != 200) co_return std::nullopt;
  co_return *std::move(reply);
}

// The cursor counts all bytes there ever were: more than came back means that the beginning is gone.
bool is_complete(const http::ClientResponse& reply) {
  auto end = parse_int<std::uint64_t>(reply.headers.get("EXECD-COMMANDS-TAIL-CURSOR"));
  return !end || *end <= reply.body.size();
}

Task<void> ask_sandbox(Context& context, Facts& facts, DiagnosisKind kind, DiagnosisScope scope) {
  auto id = facts.sandbox.id;
  if (needs_output(kind, scope)) {
    if (auto reply = co_await ask_execd(context, id, "/osb/v1/entrypoint/logs")) {
      facts.output_complete = is_complete(*reply);
      facts.output = std::move(reply->body);
    }
  }
  if (needs_processes(scope)) {
    if (auto reply = co_await ask_execd(context, id, "/osb/v1/processes")) facts.processes = std::move(reply->body);
  }
}

Task<Result<Facts>> gather(Context& context, const Call& call, DiagnosisKind kind, DiagnosisScope scope) {
  CO_TRY(auto id, sandbox_id(call));
  CO_TRY(auto sandbox, context.lifecycle.get(id, call.caller));
  CO_TRY(auto events, context.lifecycle.events(id, call.caller));
  Facts facts{.sandbox = std::move(sandbox), .events = std::move(events), .measure = {}, .output = {}, .processes = {}};
  auto measure = co_await context.lifecycle.measure(id);
  if (measure) facts.measure = *measure;
  if (facts.sandbox.status.state == State::running) co_await ask_sandbox(context, facts, kind, scope);
  co_return facts;
}

std::string stable_json(const SandboxId& id, DiagnosisKind kind, DiagnosisScope scope, const Diagnosis& diagnosis) {
  ObjectText text;
  text.add("sandboxId", id.text()).add("kind", name_of(kind)).add("scope", name_of(scope)).add("delivery", "inline");
  text.add("contentType", "text/plain; charset=utf-8").add("content", diagnosis.text).add("contentLength", diagnosis.text.size());
  text.add("truncated", diagnosis.truncated);
  append_json_list(text.key("warnings"), diagnosis.warnings);
  return std::move(text).done();
}

http::Response older_text(Diagnosis diagnosis) {
  auto response = http::Response::text(200, std::move(diagnosis.text));
  response.headers.add("Deprecation", "true");
  return response;
}

Reply answer_kind(Context& context, Call call, DiagnosisKind kind) {
  CO_TRY(auto question, parse_question(call.request.query, kind));
  // The older logs and events are what the container says and what happened to it, without headings.
  auto older = kind == DiagnosisKind::logs     ? DiagnosisScope::container
               : kind == DiagnosisKind::events ? DiagnosisScope::lifecycle
                                               : DiagnosisScope::all;
  auto scope = question.scope.value_or(older);
  CO_TRY(auto facts, co_await gather(context, call, kind, scope));
  DiagnosisBounds bounds;
  if (!question.scope) {
    bounds.lines = question.lines;
    bounds.events = question.events;
  }
  auto diagnosis = diagnose(facts, kind, scope, bounds);
  if (!question.scope) co_return older_text(std::move(diagnosis));
  co_return http::Response::json(200, stable_json(facts.sandbox.id, kind, scope, diagnosis));
}

}  // namespace

Reply diagnostics_logs(Context& context, Call call) { return answer_kind(context, std::move(call), DiagnosisKind::logs); }
Reply diagnostics_events(Context& context, Call call) { return answer_kind(context, std::move(call), DiagnosisKind::events); }
Reply diagnostics_inspect(Context& context, Call call) { return answer_kind(context, std::move(call), DiagnosisKind::inspect); }
Reply diagnostics_summary(Context& context, Call call) { return answer_kind(context, std::move(call), DiagnosisKind::summary); }

}  // namespace osb::api::v1
