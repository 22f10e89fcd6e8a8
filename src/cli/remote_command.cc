#include "cli/remote_command.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>

#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

constexpr Millis kGrace{10'000};  // past the time limit until we stop waiting for the sandbox to say so

bool is_name(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
  return true;
}

Result<> append_text(std::string& out, std::string_view text) {
  auto quoted = json_string(text);
  // U+FFFD appears only where a byte did not fit, unless the text holds one itself.
  if (quoted.contains("\\ufffd") && !text.contains("\xEF\xBF\xBD"))
    return usage_error("an argument or variable is not UTF-8 text", "pass such bytes through stdin or a file");
  out += quoted;
  return Ok{};
}

// /dev/null and a closed descriptor have nothing to say: the command gets its own /dev/null.
bool has_input(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return false;
  return !(S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3));
}

void explain(const Outcome& outcome, const RemoteCommand& command) {
  const Ending& ending = outcome.ending;
  std::string_view program = command.argv.front();
  if (outcome.kind == Outcome::Kind::overdue || ending.cause == "timed_out") {
    auto limit = command.timeout ? format_duration(std::chrono::ceil<std::chrono::seconds>(*command.timeout)) : std::string("its time");
    return complain(Error(Errc::timeout, cat("'", program, "' ran longer than ", limit, " and was killed")).with_hint(ending.advice));
  }
  if (outcome.kind != Outcome::Kind::ended) return;
  // A program that is not there has said so on stderr already, as a shell would.
  if (ending.cause == "out_of_memory")
    return complain(Error(Errc::exhausted, cat("'", program, "' was killed: the sandbox is out of memory"))
                        .with_hint(ending.advice.empty() ? "give it more with --memory" : ending.advice));
  if (ending.cause == "not_started") complain(Error(Errc::exhausted, cat("'", program, "' could not be started")).with_hint(ending.advice));
}

}  // namespace

Result<StringMap> parse_env(const std::vector<std::string>& items) {
  StringMap out;
  for (const auto& item : items) {
    auto equals = item.find('=');
    auto name = item.substr(0, equals);
    if (!is_name(name)) return usage_error(cat("'", item, "' is not K=V"), "write -e NAME=value, or -e NAME to pass the value it has here");
    const char* here = std::getenv(name.c_str());
    if (equals != std::string::npos)
      out[name] = item.substr(equals + 1);
    else if (here != nullptr)
      out[name] = here;
  }
  return out;
}

Result<bool> wants_terminal(const Args& args) {
  if (!args.has("tty")) return false;
  if (::isatty(STDIN_FILENO) == 1) return true;
  bool shell = args.command != nullptr && args.command->name == "shell";
  return usage_error(cat(shell ? "a shell" : "-t", " needs a terminal on stdin, and stdin is none"),
                     shell ? "to feed a script: opensandbox run -- sh < script" : "leave out -t to pass stdin on as it is");
}

Result<std::string> exec_body(const RemoteCommand& command, bool input, const std::optional<WindowSize>& terminal) {
  std::string out = "{\"argv\":[";
  for (const auto& word : command.argv) {
    if (out.back() != '[') out += ',';
    CHECK_OK(append_text(out, word));
  }
  out += "],\"env\":{";
  for (const auto& [name, value] : command.env) {
    if (out.back() != '{') out += ',';
    CHECK_OK(append_text(out, name));
    out += ':';
    CHECK_OK(append_text(out, value));
  }
  out += '}';
  if (!command.directory.empty()) {
    out += ",\"cwd\":";
    CHECK_OK(append_text(out, command.directory));
  }
  if (command.uid) out += cat(",\"uid\":", *command.uid);
  if (command.gid) out += cat(",\"gid\":", *command.gid);
  if (command.timeout) out += cat(",\"timeout_ms\":", command.timeout->count());
  if (terminal) out += cat(",\"tty\":{\"cols\":", terminal->cols, ",\"rows\":", terminal->rows, "}");
  out += cat(",\"stdin\":", input, "}");
  return out;
}

namespace {

Result<Connection> open_exec(Api& api, std::string_view id, std::string body) {
  TRY(auto door, api.door(id));
  Request request{"POST", cat(door.path, "/osb/v1/exec"), std::move(door.headers), std::move(body)};
  request.headers.emplace_back("Connection", "Upgrade");
  request.headers.emplace_back("Upgrade", "osb-exec/1");
  request.headers.emplace_back("Content-Type", "application/json");
  TRY(auto connection, api.another_connection());
  TRY(auto reply, connection.call(request, std::chrono::steady_clock::now() + Millis(30'000)));
  if (reply.status != 101) return error_of(reply);
  return connection;
}

// The terminal is raw in here and nowhere else: messages before and after find it as it was.
Result<Outcome> converse(Connection& connection, Streams streams, const RemoteCommand& command, Signals& signals,
                         const std::function<void(Session&)>& prepare) {
  Session session(connection.fd(), connection.take_unread(), streams, &signals);
  if (command.timeout) session.give_up_after(*command.timeout + kGrace);
  if (prepare) prepare(session);
  if (!command.terminal) return session.run();
  signals.watch_terminal();
  RawTerminal terminal(STDIN_FILENO);
  session.use_terminal(terminal);
  return session.run();
}

void pass_on_terminal_kind(StringMap& env) {
  const char* kind = std::getenv("TERM");
  if (kind != nullptr && *kind != '\0') env.try_emplace("TERM", kind);
}

}  // namespace

Result<int> carry(Api& api, std::string_view id, RemoteCommand command, Signals& signals, const std::function<void(Session&)>& prepare) {
  Streams streams;
  if (!has_input(streams.input)) streams.input = -1;
  std::optional<WindowSize> size;
  if (command.terminal) {
    size = window_size(STDIN_FILENO);
    pass_on_terminal_kind(command.env);
  }
  TRY(auto body, exec_body(command, streams.input >= 0, size));
  TRY(auto connection, open_exec(api, id, std::move(body)));
  TRY(auto outcome, converse(connection, streams, command, signals, prepare));
  explain(outcome, command);
  return exit_status_of(outcome);
}

}  // namespace osb::cli
