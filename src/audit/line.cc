#include "audit/line.h"

#include "base/clock.h"
#include "base/text.h"

namespace osb::audit {
namespace {

constexpr std::string_view kStart = R"({"v":1,"seq":)";
constexpr std::string_view kEnd = R"("prev":""})";
constexpr std::size_t kUsualBytes = 512;  // of a line

void append_value(std::string& out, std::string_view text) {
  if (text.size() <= Log::kMaxValueBytes) return append_json_string(out, text);
  append_json_string(out, cat(text.substr(0, Log::kMaxValueBytes), " (cut, ", text.size(), " bytes)"));
}

// `name` is one of ours and needs no escape.
void append_member(std::string& out, std::string_view name, std::string_view value) {
  out.append("\"", 1).append(name).append("\":", 2);
  append_value(out, value);
  out += ',';
}

void append_details(std::string& out, const Event& event) {
  out += "\"detail\":{";
  std::size_t count = 0;
  for (const auto& [name, value] : event.detail) {
    if (count++ == Log::kMaxDetails) break;
    if (count > 1) out += ',';
    append_value(out, name);
    out += ':';
    append_value(out, value);
  }
  out += "},";
}

std::optional<std::uint64_t> seq_of(std::string_view line) {
  if (!line.starts_with(kStart) || !line.ends_with(kEnd)) return std::nullopt;
  line.remove_prefix(kStart.size());
  return parse_int<std::uint64_t>(line.substr(0, line.find(',')));
}

}  // namespace

std::string make_line(std::uint64_t seq, const Caller& caller, const Event& event) {
  std::string out;
  out.reserve(kUsualBytes);
  append_all(out, kStart, seq, ",\"time\":\"", format_rfc3339(wall_now()), "\",\"boot_nanos\":", boot_now_nanos(), ",");
  append_member(out, "actor", caller.name);
  append_member(out, "request_id", caller.request_id);
  append_member(out, "action", event.action);
  append_member(out, "sandbox", event.sandbox);
  append_member(out, "outcome", event.outcome);
  append_details(out, event);
  out += kEnd;
  out += '\n';
  return out;
}

bool begins_like_record(std::string_view fragment) { return kStart.starts_with(fragment.substr(0, kStart.size())); }

std::optional<std::uint64_t> last_seq(std::string_view lines) {
  while (!lines.empty()) {
    lines.remove_suffix(1);  // the newline
    auto before = lines.rfind('\n');
    auto line = before == std::string_view::npos ? lines : lines.substr(before + 1);
    if (auto seq = seq_of(line)) return seq;
    if (before == std::string_view::npos) return std::nullopt;
    lines = lines.substr(0, before + 1);
  }
  return std::nullopt;
}

}  // namespace osb::audit
