#include "execd/run_request.h"

#include <utility>

#include "base/base64.h"
#include "base/text.h"
#include "execd/json.h"
#include "execd/small_file.h"

namespace osb::execd {
namespace {

constexpr std::int64_t kMaxTimeoutMillis = 366LL * 24 * 3600 * 1000;

Error invalid(std::string what, std::string_view field) { return Error(Errc::invalid_argument, std::move(what)).at(field); }

Result<> read_common(RunRequest& request, const boost::json::object& object, std::string_view env_name, std::string_view timeout_name) {
  TRY(request.cwd, text_member(object, "cwd"));
  TRY(request.env, env_member(object, env_name));
  TRY(request.uid, id_member(object, "uid"));
  TRY(request.gid, id_member(object, "gid"));
  if (request.gid && !request.uid) return invalid("\"gid\" needs \"uid\"", "gid");
  TRY(auto timeout, number_member(object, timeout_name));
  if (timeout && *timeout < 0) return invalid(cat("\"", timeout_name, "\" must not be negative"), timeout_name);
  // Zero is the protocol's word for none; a limit past a year would overflow a clock somewhere and limits nothing.
  if (timeout && *timeout > 0 && *timeout <= kMaxTimeoutMillis) request.timeout = std::chrono::milliseconds(*timeout);
  return Ok{};
}

Result<std::uint16_t> side_of(const boost::json::object& size, std::string_view name, std::uint16_t usual) {
  TRY(auto number, number_member(size, name));
  if (!number) return usual;
  if (*number < 1 || *number > 0xFFFF) return invalid(cat("\"tty.", name, "\" must be from 1 to 65535"), "tty");
  return static_cast<std::uint16_t>(*number);
}

Result<std::optional<WindowSize>> terminal_member(const boost::json::object& object) {
  const auto* value = object.if_contains("tty");
  if (!value || value->is_null()) return std::optional<WindowSize>();
  if (!value->is_object()) return Error(Errc::malformed, "\"tty\" must be an object with \"cols\" and \"rows\"").at("tty");
  WindowSize size;
  TRY(size.cols, side_of(value->get_object(), "cols", size.cols));
  TRY(size.rows, side_of(value->get_object(), "rows", size.rows));
  return std::optional(size);
}

Result<> check_word(const std::string& word, std::string_view field) {
  if (word.find('\0') != std::string::npos) return invalid(cat("\"", field, "\" contains a zero byte"), field);
  if (word.size() > kMaxCommandBytes)
    return invalid(cat("\"", field, "\" is longer than ", kMaxCommandBytes, " bytes; write it to a file and run that"), field);
  return Ok{};
}

// The caller's directory must be there; the sandbox's own may be missing from an image.
Result<> place(StartRequest& start, const Setup& setup, const std::string& cwd) {
  start.cwd_may_be_missing = cwd.empty();
  auto path = cwd.empty() ? Result(setup.cwd) : expand_path(cwd, setup.env, setup.home, setup.cwd);
  if (!path) return std::move(path).error().in("cwd").at("cwd");
  start.cwd = *std::move(path);
  return Ok{};
}

Result<> identify(StartRequest& start, const Setup& setup, const RunRequest& request) {
  if (const Identity* who = becomes(setup)) start.who = *who;
  bool another = request.uid && !(setup.native && *request.uid == setup.who.uid && request.gid.value_or(setup.who.gid) == setup.who.gid);
  if (another && setup.native && *request.uid == kAgentUid) return invalid("this uid is reserved", "uid");
  if (!another) return Ok{};
  if (setup.one_user) return invalid("this runtime has one user, and nobody can become another", "uid");
  start.who = look_up(*request.uid, request.gid);
  become(start.env, *start.who);
  return Ok{};
}

// The sandbox's own variables lie beneath those of the program, uncopied, unless a file changes them.
void lay_out(StartRequest& start, const Setup& setup) {
  start.base_env = &setup.env;
  std::string path(value_of(setup.env, "EXECD_ENVS"));
  if (path.empty()) return;
  auto text = read_small_file(path, kMaxEnvFile);
  if (!text) return;
  start.base_env = nullptr;
  start.env = setup.env;
  overlay_file_text(start.env, *text);
}

Result<> read_argv(RunRequest& request, const boost::json::object& object) {
  TRY(request.argv, list_member(object, "argv"));
  if (request.argv.empty() || request.argv.front().empty()) return invalid("\"argv\" must name a program", "argv");
  for (const std::string& word : request.argv) CHECK_OK(check_word(word, "argv"));
  return Ok{};
}

Result<> read_input(RunRequest& request, const boost::json::object& object) {
  if (!object.contains("input")) return Ok{};
  TRY(auto text, text_member(object, "input"));
  request.input = decode_base64(text);
  if (!request.input) return invalid("\"input\" must be base64", "input");
  if (request.input->size() > kMaxInputBytes) return invalid(cat("\"input\" has more than ", kMaxInputBytes, " bytes"), "input");
  request.with_stdin = true;
  return Ok{};
}

}  // namespace

Result<RunRequest> parse_command_request(std::string_view body) {
  TRY(auto object, parse_object(body));
  RunRequest request;
  TRY(request.command, text_member(object, "command"));
  if (object.contains("argv")) {
    if (!request.command.empty()) return invalid("\"command\" and \"argv\" exclude each other", "argv");
    CHECK_OK(read_argv(request, object));
  } else if (request.command.empty()) {
    return invalid("\"command\" is required", "command");
  }
  CHECK_OK(check_word(request.command, "command"));
  TRY(request.background, flag_member(object, "background"));
  TRY(request.raw, flag_member(object, "raw"));
  CHECK_OK(read_input(request, object));
  if (request.background && request.input) return invalid("\"input\" is for commands in the foreground", "input");
  CHECK_OK(read_common(request, object, "envs", "timeout"));
  return request;
}

Result<RunRequest> parse_exec_request(std::string_view body) {
  TRY(auto object, parse_object(body));
  RunRequest request;
  CHECK_OK(read_argv(request, object));
  TRY(request.with_stdin, flag_member(object, "stdin"));
  TRY(request.terminal, terminal_member(object));
  CHECK_OK(read_common(request, object, "env", "timeout_ms"));
  return request;
}

Result<StartRequest> prepare(const Setup& setup, RunRequest request) {
  StartRequest start;
  lay_out(start, setup);
  CHECK_OK(place(start, setup, request.cwd));
  CHECK_OK(identify(start, setup, request));
  start.env.insert_or_assign("PWD", start.cwd);
  for (auto& [name, value] : request.env) start.env.insert_or_assign(name, std::move(value));
  bool shell = request.argv.empty();
  start.attempts = shell ? attempts_for_command(request.command, start.variables()) : attempts_for_argv(std::move(request.argv));
  start.timeout = request.timeout;
  start.with_stdin = request.with_stdin;
  start.terminal = request.terminal;
  // Programs that draw ask TERM what their terminal can do; every client of today draws like an xterm.
  if (start.terminal && !start.variables().find("TERM")) start.env.emplace("TERM", "xterm-256color");
  return start;
}

}  // namespace osb::execd
