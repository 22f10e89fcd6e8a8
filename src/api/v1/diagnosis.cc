#include "api/v1/diagnosis.h"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdio>

#include "api/plain_text.h"
#include "base/text.h"
#include "model/json.h"

namespace osb::api::v1 {
namespace {

constexpr std::array kScopes{DiagnosisScope::all,     DiagnosisScope::container, DiagnosisScope::lifecycle,
                             DiagnosisScope::runtime, DiagnosisScope::network,   DiagnosisScope::process};
constexpr std::size_t kCommandColumns = 120;

using Writer = void (*)(const Facts&, DiagnosisBounds, Diagnosis&);

void line(Diagnosis& out, std::string_view name, std::string_view value) { out.text += cat(name, ": ", value, "\n"); }
void line(Diagnosis& out, std::string_view name, std::uint64_t value) { out.text += cat(name, ": ", value, "\n"); }

void missing(Diagnosis& out, std::string words) {
  out.text += cat("(", words, ")\n");
  out.warnings.push_back(std::move(words));
}

std::string why_unreadable(const Facts& facts, std::string_view what) {
  auto state = facts.sandbox.status.state;
  if (lifecycle::is_finished(state)) return cat(what, " is not kept: it went with the sandbox when it ended");
  if (state != State::running) return cat(what, " cannot be read while the sandbox is ", to_lower(name_of(state)));
  return cat(what, " could not be read: execd in the sandbox did not answer in time");
}

void write_output(const Facts& facts, DiagnosisBounds bounds, Diagnosis& out) {
  if (!facts.output) return missing(out, why_unreadable(facts, "the output of the first program"));
  auto text = plain_text(*facts.output);
  out.truncated = out.truncated || !facts.output_complete;
  out.text += last_lines(text, bounds.lines, bounds.bytes, out.truncated);
  if (text.empty()) return;
  if (out.text.back() != '\n') out.text += '\n';
}

void write_events(const Facts& facts, bool all, DiagnosisBounds bounds, Diagnosis& out) {
  const auto& events = facts.events.events();
  std::vector<const lifecycle::Event*> chosen;
  for (const auto& event : events)
    if (all || event.of_container) chosen.push_back(&event);
  std::size_t skip = chosen.size() > bounds.events ? chosen.size() - bounds.events : 0;
  out.truncated = out.truncated || skip > 0 || facts.events.dropped() > 0;
  for (std::size_t i = skip; i < chosen.size(); ++i) {
    const auto& event = *chosen[i];
    out.text += cat(format_rfc3339(event.at), " ", event.type, event.reason.empty() ? "" : " ", event.reason, ": ",
                    plain_text(event.message), "\n");
  }
}

void write_all_events(const Facts& facts, DiagnosisBounds bounds, Diagnosis& out) { write_events(facts, true, bounds, out); }
void write_state_events(const Facts& facts, DiagnosisBounds bounds, Diagnosis& out) { write_events(facts, false, bounds, out); }

void write_container(const Facts& facts, DiagnosisBounds, Diagnosis& out) {
  const auto& sandbox = facts.sandbox;
  line(out, "id", sandbox.id.text());
  line(out, "state", name_of(sandbox.status.state));
  if (!sandbox.status.reason.empty()) line(out, "reason", sandbox.status.reason);
  if (!sandbox.status.message.empty()) line(out, "message", sandbox.status.message);
  line(out, "last_transition_at", format_rfc3339(sandbox.status.changed_at));
  line(out, "image", plain_text(sandbox.spec.image));
  std::string words;
  for (const auto& word : sandbox.spec.entrypoint) words += cat(words.empty() ? "" : " ", json_string(word));
  line(out, "entrypoint", words);
}

void write_lifecycle(const Facts& facts, DiagnosisBounds, Diagnosis& out) {
  const auto& sandbox = facts.sandbox;
  line(out, "created_at", format_rfc3339(sandbox.created_at));
  line(out, "expires_at", sandbox.expires_at ? format_rfc3339(*sandbox.expires_at) : std::string("never"));
  for (const auto& [key, value] : sandbox.spec.metadata) line(out, cat("metadata.", key), value);
}

void write_runtime(const Facts& facts, DiagnosisBounds, Diagnosis& out) {
  const auto& spec = facts.sandbox.spec;
  line(out, "user", name_of(spec.policy.user));
  line(out, "syscalls", name_of(spec.policy.syscalls));
  line(out, "root", spec.policy.root == RootMode::read_only ? "read-only" : "writable");
  line(out, "limit.cpu_millis", spec.limits.cpu_millis);
  line(out, "limit.memory_bytes", spec.limits.memory_bytes);
  line(out, "limit.disk_bytes", spec.limits.disk_bytes);
  line(out, "limit.pids", spec.limits.pids);
  if (!facts.measure) return missing(out, "what it uses is not known: it has no processes");
  const auto& usage = facts.measure->usage;
  line(out, "used.cpu_nanos", usage.cpu_nanos);
  line(out, "used.cpu_throttled_nanos", usage.cpu_throttled_nanos);
  line(out, "used.memory_bytes", facts.measure->memory_used_bytes);
  line(out, "used.memory_peak_bytes", usage.memory_peak_bytes);
  line(out, "used.disk_bytes", usage.disk_bytes);
  line(out, "used.pids", usage.pids);
  line(out, "killed_out_of_memory", usage.oom_kills);
}

// What the limits did to it; nothing to tell is an empty text.
void write_runtime_events(const Facts& facts, DiagnosisBounds, Diagnosis& out) {
  if (facts.sandbox.status.reason == "OOMKilled") out.text += cat(format_rfc3339(facts.sandbox.status.changed_at), " oom_killed\n");
  if (!facts.measure) return;
  const auto& usage = facts.measure->usage;
  auto now = format_rfc3339(facts.measure->taken_at);
  if (usage.oom_kills > 0) out.text += cat(now, " out_of_memory: ", usage.oom_kills, " processes were killed so far\n");
  if (usage.cpu_throttled_nanos > 0)
    out.text +=
        cat(now, " throttled: held back for ", usage.cpu_throttled_nanos / 1'000'000, " ms so far by its limit of processor time\n");
}

void write_network(const Facts& facts, DiagnosisBounds, Diagnosis& out) {
  line(out, "policy", "deny_all");
  line(out, "interfaces", "lo");
  if (!facts.measure) return;
  line(out, "received_bytes", facts.measure->usage.network_received_bytes);
  line(out, "sent_bytes", facts.measure->usage.network_sent_bytes);
}

std::int64_t number_of(const boost::json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value && value->is_int64() ? value->get_int64() : 0;
}

// The sandbox's own word: parsed strictly, shown as text.
void write_processes(const Facts& facts, DiagnosisBounds, Diagnosis& out) {
  if (!facts.processes) return missing(out, why_unreadable(facts, "the list of processes"));
  auto object = parse_json_object(*facts.processes);
  const auto* list = object ? object->if_contains("processes") : nullptr;
  if (!list || !list->is_array()) return missing(out, "the list of processes is not what execd sends");
  out.text += "PID PARENT USER MEMORY_BYTES CPU_MILLIS COMMAND\n";
  for (const auto& item : list->get_array()) {
    if (!item.is_object()) continue;
    const auto& one = item.get_object();
    const auto* command = one.if_contains("command");
    auto words = plain_text(command && command->is_string() ? std::string_view(command->get_string()) : std::string_view());
    for (char& c : words)
      if (c == '\n') c = ' ';
    bool ignored = false;
    if (words.size() > kCommandColumns) words = cat(last_lines(words.substr(0, kCommandColumns), 1, kCommandColumns, ignored), "...");
    out.text += cat(number_of(one, "pid"), " ", number_of(one, "parent"), " ", number_of(one, "user"), " ", number_of(one, "memoryBytes"),
                    " ", number_of(one, "cpuMillis"), " ", words, "\n");
  }
}

// Which text belongs to a scope, for each kind.
Writer writer_of(DiagnosisKind kind, DiagnosisScope scope) {
  bool events = kind == DiagnosisKind::events;
  bool inspect = kind == DiagnosisKind::inspect;
  switch (scope) {
    case DiagnosisScope::container: return events ? write_state_events : inspect ? write_container : write_output;
    case DiagnosisScope::lifecycle: return inspect ? write_lifecycle : write_all_events;
    case DiagnosisScope::runtime: return events ? write_runtime_events : write_runtime;
    case DiagnosisScope::network: return write_network;
    case DiagnosisScope::process:
    case DiagnosisScope::all: break;
  }
  return write_processes;
}

void write_scope(const Facts& facts, DiagnosisKind kind, DiagnosisScope scope, DiagnosisBounds bounds, Diagnosis& out) {
  if (scope != DiagnosisScope::all) return writer_of(kind, scope)(facts, bounds, out);
  for (auto one : kScopes) {
    if (one == DiagnosisScope::all) continue;
    out.text += cat(out.text.empty() ? "" : "\n", "== ", name_of(one), " ==\n");
    writer_of(kind, one)(facts, bounds, out);
  }
}

}  // namespace

std::string_view name_of(DiagnosisKind kind) {
  switch (kind) {
    case DiagnosisKind::logs: return "logs";
    case DiagnosisKind::events: return "events";
    case DiagnosisKind::inspect: return "inspect";
    case DiagnosisKind::summary: return "summary";
  }
  return "logs";
}

std::string_view name_of(DiagnosisScope scope) {
  switch (scope) {
    case DiagnosisScope::all: return "all";
    case DiagnosisScope::container: return "container";
    case DiagnosisScope::lifecycle: return "lifecycle";
    case DiagnosisScope::runtime: return "runtime";
    case DiagnosisScope::network: return "network";
    case DiagnosisScope::process: return "process";
  }
  return "all";
}

std::optional<DiagnosisScope> parse_scope(std::string_view text) {
  for (auto scope : kScopes)
    if (name_of(scope) == text) return scope;
  return std::nullopt;
}

Diagnosis diagnose(const Facts& facts, DiagnosisKind kind, DiagnosisScope scope, DiagnosisBounds bounds) {
  Diagnosis out;
  if (kind != DiagnosisKind::summary) {
    write_scope(facts, kind, scope, bounds, out);
  } else {
    for (auto part : {DiagnosisKind::inspect, DiagnosisKind::events, DiagnosisKind::logs}) {
      out.text += cat(out.text.empty() ? "" : "\n", "# ", name_of(part), "\n");
      write_scope(facts, part, scope == DiagnosisScope::all && part == DiagnosisKind::logs ? DiagnosisScope::container : scope, bounds,
                  out);
    }
  }
  if (out.text.size() > bounds.bytes) out.text = last_lines(out.text, static_cast<std::size_t>(-1), bounds.bytes, out.truncated);
  return out;
}

}  // namespace osb::api::v1
