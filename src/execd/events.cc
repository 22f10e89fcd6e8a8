#include "execd/events.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/text.h"
#include "http/websocket.h"

namespace osb::execd::events {
namespace {

void finish(std::string& out, std::uint64_t seq = 0) {
  if (seq != 0) {
    out += ",\"seq\":";
    append(out, seq);
  }
  out += ",\"timestamp\":";
  append(out, wall_now_millis());
  out += "}\n\n";
}

void append_error_event(std::string& out, std::uint64_t seq, std::string_view value, std::string_view trace, const ExitStatus& status,
                        std::int64_t execution_millis = 0) {
  out += R"({"type":"error","error":{"ename":"CommandExecError","evalue":)";
  append_json_string(out, value);
  out += ",\"traceback\":[";
  append_json_string(out, trace);
  out += "]},\"cause\":";
  append_json_string(out, name_of(status.cause));
  if (auto advice = advise(status); !advice.empty()) {
    out += ",\"advice\":";
    append_json_string(out, advice);
  }
  if (status.interrupted) out += ",\"interrupted\":true";
  out += ",\"execution_time\":";
  append(out, execution_millis);
  finish(out, seq);
}

}  // namespace

void append_init(std::string& out, std::uint64_t seq, std::string_view text, std::string_view run_id) {
  out += R"({"type":"init","text":)";
  append_json_string(out, text);
  out += ",\"run_id\":";
  append_json_string(out, run_id);
  finish(out, seq);
}

void append_ping(std::string& out) {
  out += R"({"type":"ping","text":"pong")";
  finish(out);
}

void append_output(std::string& out, std::uint64_t seq, std::string_view type, std::string_view text) {
  out += R"({"type":")";
  out += type;
  out += R"(","text":)";
  append_json_string(out, text);
  finish(out, seq);
}

void append_raw_output(std::string& out, std::uint64_t seq, std::string_view type, std::string_view bytes) {
  if (http::is_utf8(bytes)) return append_output(out, seq, type, bytes);
  out += R"({"type":")";
  out += type;
  out += R"(","base64":")";
  append_base64(out, bytes);
  out += '"';
  finish(out, seq);
}

void append_complete(std::string& out, std::uint64_t seq, std::int64_t execution_millis) {
  out += R"({"type":"execution_complete","execution_time":)";
  append(out, execution_millis);
  finish(out, seq);
}

void append_error(std::string& out, std::uint64_t seq, const ExitStatus& status, std::int64_t execution_millis) {
  append_error_event(out, seq, cat(wire_code(status)), describe(status), status, execution_millis);
}

void append_start_error(std::string& out, std::uint64_t seq, std::string_view reason, Cause cause) {
  append_error_event(out, seq, reason, reason, ExitStatus{.cause = cause});
}

void append_truncated(std::string& out, std::uint64_t missed) {
  out += R"({"type":"truncated","missed":)";
  append(out, missed);
  finish(out);
}

}  // namespace osb::execd::events
