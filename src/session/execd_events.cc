#include "session/execd_events.h"

#include <algorithm>
#include <boost/json/object.hpp>

#include "base/base64.h"
#include "base/text.h"
#include "model/json.h"

namespace osb::session {
namespace {

namespace json = boost::json;

constexpr std::size_t kRunId = 32;  // hex digits
constexpr std::size_t kMaxTraceback = 256;

std::string text_of(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  const auto* text = value ? value->if_string() : nullptr;
  return text ? std::string(*text) : std::string();
}

std::int64_t number_of(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  if (!value) return 0;
  if (value->is_int64()) return std::max<std::int64_t>(0, value->get_int64());
  return 0;
}

bool flag_of(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value && value->is_bool() && value->get_bool();
}

std::optional<Output> output_of(const json::object& event, bool is_stderr) {
  if (!event.contains("base64")) return Output{is_stderr, text_of(event, "text")};
  auto bytes = decode_base64(text_of(event, "base64"));
  if (!bytes) return std::nullopt;
  return Output{is_stderr, *std::move(bytes)};
}

CodeResult result_of(const json::object& event) {
  CodeResult result;
  const auto* value = event.if_contains("results");
  const auto* forms = value ? value->if_object() : nullptr;
  if (!forms) return result;
  for (const auto& [name, form] : *forms)
    if (name != "text" && form.is_string()) result.data.emplace(std::string(name), std::string(form.get_string()));
  return result;
}

CodeError error_of(const json::object& error) {
  CodeError out{text_of(error, "ename"), text_of(error, "evalue"), {}};
  const auto* value = error.if_contains("traceback");
  const auto* lines = value ? value->if_array() : nullptr;
  for (std::size_t i = 0; lines && i < lines->size() && i < kMaxTraceback; ++i)
    if ((*lines)[i].is_string()) out.traceback.emplace_back((*lines)[i].get_string());
  return out;
}

// The end of a command that failed, and of code that raised.
Exit failure_of(const json::object& event) {
  Exit exit;
  exit.duration_ms = static_cast<double>(number_of(event, "execution_time"));
  exit.advice = text_of(event, "advice");
  const auto* value = event.if_contains("error");
  auto error = value && value->is_object() ? error_of(value->get_object()) : CodeError{};
  auto cause = text_of(event, "cause");
  if (error.name != "CommandExecError") {
    exit.exit_code = 1;
    exit.error = std::move(error);
    return exit;
  }
  auto code = parse_int<int>(error.value);
  exit.exit_code = code ? std::clamp(*code, -1, 255) : cause == "not_found" ? 127 : 126;
  if (!code) exit.advice = exit.advice.empty() ? error.value : cat(error.value, ". ", exit.advice);
  if (cause == "signalled") exit.cause = Cause::signalled;
  if (cause == "out_of_memory") {
    exit.cause = Cause::out_of_memory;
    exit.advice = "The session reached its memory limit: use less memory or ask for a larger resources.memory_mb.";
  }
  if (flag_of(event, "interrupted")) exit.cause = Cause::interrupted;
  if (cause != "timed_out") return exit;
  exit.cause = Cause::timed_out;
  exit.exit_code = 124;
  exit.advice = "The command was killed when its time was over: give it a longer timeout_seconds.";
  return exit;
}

bool is_hex(std::string_view text) { return text.size() == kRunId && text.find_first_not_of("0123456789abcdef") == text.npos; }

}  // namespace

void EventReader::feed(std::string_view bytes) {
  buffer_.erase(0, at_);
  scanned_ -= at_;
  at_ = 0;
  buffer_ += bytes;
}

Result<std::optional<ExecEvent>> EventReader::next() {
  for (;;) {
    auto end = buffer_.find('\n', scanned_);
    if (end == std::string::npos) {
      scanned_ = buffer_.size();
      if (buffer_.size() - at_ > kMaxLine) return Error(Errc::unavailable, "execd sends a line without end");
      return std::optional<ExecEvent>();
    }
    auto line = std::string_view(buffer_).substr(at_, end - at_);
    at_ = scanned_ = end + 1;
    if (line.empty()) continue;
    if (auto event = read(line)) return event;
  }
}

// What is not an event of a command (counts, what a later execd may add) is passed over.
std::optional<ExecEvent> EventReader::read(std::string_view line) {
  auto parsed = parse_json_object(line, {.bytes = kMaxLine, .depth = 16});
  if (!parsed) return std::nullopt;
  const auto& object = *parsed;
  auto type = text_of(object, "type");
  ExecEvent event;
  event.seq = static_cast<std::uint64_t>(number_of(object, "seq"));
  last_seq_ = std::max(last_seq_, event.seq);
  if (type == "init") {
    if (is_code_) context_ = text_of(object, "text");
    event.what = Started{session_id_, exec_id_of(text_of(object, "run_id"), context_)};
  } else if (type == "stdout" || type == "stderr") {
    auto output = output_of(object, type == "stderr");
    if (!output) return std::nullopt;
    event.what = *std::move(output);
  } else if (type == "result") {
    event.what = result_of(object);
  } else if (type == "truncated") {
    event.what = Lost{static_cast<std::uint64_t>(number_of(object, "missed"))};
  } else if (type == "error") {
    event.what = failure_of(object);
  } else if (type == "execution_complete") {
    event.what = Exit{.duration_ms = static_cast<double>(number_of(object, "execution_time"))};
  } else if (type == "ping") {
    event.what = Silence{};
  } else {
    return std::nullopt;
  }
  return event;
}

std::string exec_id_of(std::string_view run, std::string_view context) {
  return context.empty() ? std::string(run) : cat(run, ".", context);
}

std::optional<ExecName> parse_exec_id(std::string_view id) {
  auto dot = id.find('.');
  ExecName name{std::string(id.substr(0, dot)), dot == id.npos ? std::string() : std::string(id.substr(dot + 1))};
  if (!is_hex(name.run) || (dot != id.npos && !is_hex(name.context))) return std::nullopt;
  return name;
}

}  // namespace osb::session
