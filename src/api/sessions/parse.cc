#include "api/sessions/parse.h"

#include <boost/json/serialize.hpp>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "model/json.h"

namespace osb::api::sessions {
namespace {

namespace json = boost::json;

Error invalid(std::string_view field, std::string_view why) {
  return Error(Errc::invalid_argument, cat(field, ": ", why)).with_code("SESSION::INVALID_PARAMETER").at(field);
}

// One object of a body. Members are read one by one; what is left over at the end nobody knows.
class Members {
 public:
  Members(const json::object& object, std::string_view prefix) : object_(object), prefix_(prefix) {}

  // nullptr: absent or null.
  const json::value* find(std::string_view name) {
    known_.push_back(name);
    const auto* value = object_.if_contains(name);
    return value && !value->is_null() ? value : nullptr;
  }
  Result<> text(std::string_view name, std::string& into) {
    const auto* value = find(name);
    if (!value) return Ok{};
    if (!value->is_string()) return wrong(name, "a string");
    into = value->get_string();
    return Ok{};
  }
  template <class Flag>
  Result<> flag(std::string_view name, Flag& into) {
    const auto* value = find(name);
    if (!value) return Ok{};
    if (!value->is_bool()) return wrong(name, "true or false");
    into = value->get_bool();
    return Ok{};
  }
  Result<> real(std::string_view name, std::optional<double>& into) {
    const auto* value = find(name);
    if (!value) return Ok{};
    if (!value->is_number()) return wrong(name, "a number");
    into = value->to_number<double>();
    return Ok{};
  }
  // Whole numbers; what no such number of this width holds is out of every range, and the caller's bounds say so.
  template <std::integral N>
  Result<> whole(std::string_view name, std::optional<N>& into) {
    const auto* value = find(name);
    if (!value) return Ok{};
    if (!value->is_number()) return wrong(name, "a whole number");
    auto number = value->to_number<double>();
    if (number != std::floor(number)) return wrong(name, "a whole number");
    if (number < 0 && std::is_unsigned_v<N>) return invalid(full(name), "must not be negative");
    if (number < -9e15 || number > 9e15 || number > static_cast<double>(std::numeric_limits<N>::max()))
      return invalid(full(name), "is out of range");
    into = static_cast<N>(number);
    return Ok{};
  }
  Result<> texts(std::string_view name, StringMap& into) {
    const auto* value = find(name);
    if (!value) return Ok{};
    if (!value->is_object()) return wrong(name, "an object of strings");
    for (const auto& [key, member] : value->get_object()) {
      if (!member.is_string()) return invalid(cat(full(name), ".", std::string_view(key).substr(0, 80)), "must be a string");
      into.emplace(std::string(key), std::string(member.get_string()));
    }
    return Ok{};
  }
  Result<> no_others() const {
    for (const auto& [key, value] : object_) {
      std::string_view name = key;
      if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
      auto error = Error(Errc::invalid_argument, cat(full(name.substr(0, 80)), ": there is no such field"))
                       .with_code("SESSION::UNKNOWN_FIELD")
                       .at(full(name.substr(0, 80)));
      if (auto close = nearest(name, known_)) return std::move(error).with_hint(cat("Did you mean ", full(*close), "?"));
      return std::move(error).with_hint(cat("Leave it out. ", all_known()));
    }
    return Ok{};
  }
  std::string full(std::string_view name) const { return prefix_.empty() ? std::string(name) : cat(prefix_, ".", name); }
  Error wrong(std::string_view name, std::string_view wanted) const { return invalid(full(name), cat("must be ", wanted)); }

 private:
  std::string all_known() const {
    std::string out = "There are";
    for (auto name : known_) out += cat(name == known_.front() ? " " : ", ", name);
    return out + ".";
  }
  const json::object& object_;
  std::string_view prefix_;
  std::vector<std::string_view> known_;
};

// The object that a member holds, or an empty one.
Result<const json::object*> part(Members& members, std::string_view name) {
  static const json::object kNone;
  const auto* value = members.find(name);
  if (!value) return &kNone;
  if (!value->is_object()) return members.wrong(name, "an object");
  return &value->get_object();
}

Result<> read_resources(const json::object& object, session::ResourceRequest& out) {
  Members members(object, "resources");
  CHECK_OK(members.whole("memory_mb", out.memory_mb));
  CHECK_OK(members.real("cpu_cores", out.cpu_cores));
  CHECK_OK(members.whole("disk_mb", out.disk_mb));
  CHECK_OK(members.whole("pids", out.pids));
  CHECK_OK(members.whole("timeout_seconds", out.timeout_seconds));
  return members.no_others();
}

Result<> read_security(const json::object& object, session::SecurityRequest& out) {
  Members members(object, "security");
  CHECK_OK(members.text("syscall_allowlist", out.syscall_allowlist));
  CHECK_OK(members.text("network_policy", out.network_policy));
  CHECK_OK(members.flag("read_only_root", out.read_only_root));
  TRY(const auto* policy, part(members, "command_policy"));
  if (object.contains("command_policy") && !object.at("command_policy").is_null()) out.command_policy = json::serialize(*policy);
  return members.no_others();
}

Result<> read_session(Members& members, session::CreateRequest& out) {
  CHECK_OK(members.text("runtime", out.runtime));
  CHECK_OK(members.text("image", out.image));
  CHECK_OK(members.texts("env", out.env));
  CHECK_OK(members.texts("metadata", out.metadata));
  TRY(const auto* resources, part(members, "resources"));
  CHECK_OK(read_resources(*resources, out.resources));
  TRY(const auto* security, part(members, "security"));
  return read_security(*security, out.security);
}

Result<> read_command(Members& members, session::ExecRequest& out) {
  const auto* value = members.find("command");
  if (!value) return invalid("command", "is required");
  if (value->is_string()) {
    out.command = value->get_string();
    return Ok{};
  }
  if (!value->is_array()) return members.wrong("command", "a line for the shell, or an array of a program and its arguments");
  for (const auto& word : value->get_array()) {
    if (!word.is_string()) return members.wrong("command", "an array of strings");
    out.argv.emplace_back(word.get_string());
  }
  return Ok{};
}

Result<> read_manner(Members& members, ExecBody& out) {
  CHECK_OK(members.real("timeout_seconds", out.request.timeout_seconds));
  CHECK_OK(members.flag("stream", out.stream));
  std::optional<std::uint64_t> most;
  CHECK_OK(members.whole("max_output_bytes", most));
  if (most && *most > session::kMaxOutputBytes) return invalid("max_output_bytes", cat("must be from 0 to ", session::kMaxOutputBytes));
  out.max_output_bytes = most.value_or(out.max_output_bytes);
  return Ok{};
}

Result<> read_exec(Members& members, ExecBody& out) {
  CHECK_OK(read_command(members, out.request));
  CHECK_OK(read_manner(members, out));
  if (const auto* input = members.find("stdin")) {
    if (!input->is_string()) return members.wrong("stdin", "a string");
    out.request.input = std::string(input->get_string());
  }
  return members.text("cwd", out.request.cwd);
}

Result<json::object> object_of(std::string_view body, std::size_t limit) {
  auto object = parse_json_object(body, {.bytes = limit});
  if (object) return object;
  auto kind = object.error().kind() == Errc::too_large ? Errc::too_large : Errc::invalid_argument;
  return Error(kind, object.error().what()).with_code("SESSION::INVALID_JSON");
}

Result<std::uint64_t> number_of(std::string_view name, std::string_view text) {
  if (auto number = parse_int<std::uint64_t>(text)) return *number;
  return invalid(name, "must be a whole number");
}

Result<std::uint32_t> mode_of(std::string_view text) {
  std::uint32_t mode = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  bool whole = failed == std::errc{} && end == text.data() + text.size() && (text.size() == 3 || text.size() == 4);
  if (!whole || mode == 0 || mode > 0777) return invalid("mode", "must be octal permission bits from 001 to 777");
  return mode;
}

}  // namespace

Result<session::CreateRequest> parse_create(std::string_view body) {
  TRY(auto object, object_of(body, kMaxJsonBytes));
  Members members(object, "");
  session::CreateRequest out;
  CHECK_OK(read_session(members, out));
  CHECK_OK(members.flag("ephemeral", out.ephemeral));
  CHECK_OK(members.no_others());
  return out;
}

Result<ExecBody> parse_exec(std::string_view body) {
  TRY(auto object, object_of(body, kLargeJson));
  Members members(object, "");
  ExecBody out;
  CHECK_OK(read_exec(members, out));
  CHECK_OK(members.texts("env", out.request.env));
  CHECK_OK(members.no_others());
  return out;
}

Result<ExecBody> parse_code(std::string_view body) {
  TRY(auto object, object_of(body, kLargeJson));
  Members members(object, "");
  ExecBody out;
  CHECK_OK(members.text("code", out.request.code));
  CHECK_OK(members.text("language", out.request.language));
  if (out.request.code.empty()) return invalid("code", "is required and must not be empty");
  if (out.request.language.empty()) return invalid("language", "is required, such as python, javascript or bash");
  CHECK_OK(read_manner(members, out));
  CHECK_OK(members.no_others());
  return out;
}

Result<RunBody> parse_run(std::string_view body) {
  TRY(auto object, object_of(body, kLargeJson));
  Members members(object, "");
  RunBody out;
  CHECK_OK(read_session(members, out.session));
  CHECK_OK(read_exec(members, out.exec));
  CHECK_OK(members.no_others());
  return out;
}

Result<Page> parse_page(std::string_view query) {
  Page page;
  TRY(auto pairs, http::parse_query(query));
  for (const auto& [name, value] : pairs) {
    if (name == "page") {
      TRY(page.number, number_of(name, value));
    } else if (name == "page_size") {
      TRY(page.size, number_of(name, value));
    } else {
      return Error(Errc::invalid_argument, cat(name.substr(0, 80), ": there is no such parameter"))
          .with_code("SESSION::UNKNOWN_FIELD")
          .at(name.substr(0, 80));
    }
  }
  return page;
}

Result<FileQuery> parse_file_query(std::string_view query, bool with_mode) {
  FileQuery out;
  TRY(auto pairs, http::parse_query(query));
  for (const auto& [name, value] : pairs) {
    if (name == "path" && out.path.empty()) {
      out.path = value;
    } else if (name == "mode" && with_mode) {
      TRY(out.mode, mode_of(value));
    } else {
      return Error(Errc::invalid_argument, cat(name.substr(0, 80), ": there is no such parameter, or it is given twice"))
          .with_code("SESSION::UNKNOWN_FIELD")
          .at(name.substr(0, 80));
    }
  }
  if (out.path.empty()) return invalid("path", "is required");
  return out;
}

Result<std::uint64_t> parse_after(const http::Request& request) {
  TRY(auto pairs, http::parse_query(request.query));
  for (const auto& [name, value] : pairs)
    if (name == "after") return number_of(name, value);
  auto last = request.headers.get("Last-Event-ID");
  if (last.empty()) return std::uint64_t{0};
  return number_of("Last-Event-ID", last);
}

}  // namespace osb::api::sessions
