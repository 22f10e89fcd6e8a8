#include <poll.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/terminal.h"
#include "http/http.h"

namespace osb::cli {
namespace {

constexpr int kFollowMillis = 100;

constexpr std::array kOptions{
    OptionSpec{"-f,--follow", "", "go on until it ends"},
    kHostOption,
    kKeyOption,
    kKeyFileOption,
};

// Reads one log piece by piece; the cursor is the daemon's word and only handed back.
class LogReader {
 public:
  LogReader(Api& api, Door door, std::string command) : api_(api), door_(std::move(door)), command_(std::move(command)) {}

  Result<std::string> next() {
    auto path = command_.empty() ? std::string("/osb/v1/entrypoint/logs") : cat("/command/", http::percent_encode(command_), "/logs");
    auto query = cursor_.empty() ? std::string() : cat("?cursor=", http::percent_encode(cursor_));
    TRY(auto reply, api_.call("GET", cat(door_.path, path, query), {}, door_.headers));
    if (auto cursor = reply.header("execd-commands-tail-cursor"); !cursor.empty()) cursor_ = cursor;
    return std::move(reply.body);
  }

  // A first program has no status of its own: its end is the end of the sandbox.
  Result<bool> is_running() {
    if (command_.empty()) return true;
    TRY(auto reply, api_.call("GET", cat(door_.path, "/command/status/", http::percent_encode(command_)), {}, door_.headers));
    TRY(auto status, parse_object(reply.body));
    const auto* running = status.if_contains("running");
    return running != nullptr && running->is_bool() && running->get_bool();
  }

 private:
  Api& api_;
  Door door_;
  std::string command_;
  std::string cursor_;
};

bool means_gone(const Error& error) {
  return error.kind() == Errc::not_found || error.kind() == Errc::unavailable || error.kind() == Errc::conflict;
}

Result<int> follow(LogReader& log) {
  for (bool first = true;; first = false) {
    auto running = log.is_running();
    auto text = log.next();
    if (!text && !first && means_gone(text.error())) return kExitOk;
    if (!text) return std::move(text).error();
    CHECK_OK(print(*text));
    if (!running || !*running) return kExitOk;
    ::poll(nullptr, 0, kFollowMillis);
  }
}

// Of a sandbox that does not run the daemon says in words what there is.
Result<int> tell_instead(Api& api, const std::string& id) {
  TRY(auto object, read_diagnostics(api, id, "logs", "container"));
  note(text_of(object, "content"));
  return kExitFailure;
}

Result<int> logs(const Args& args) {
  TRY(auto api, find_daemon(args));
  TRY(auto id, api.resolve(args.operands[0]));
  TRY(auto door, api.door(id));
  LogReader log(api, std::move(door), args.operands.size() > 1 ? args.operands[1] : "");
  if (args.has("follow")) return follow(log);
  auto text = log.next();
  if (!text && text.error().kind() == Errc::conflict && args.operands.size() == 1) return tell_instead(api, id);
  if (!text) return std::move(text).error();
  CHECK_OK(print(*text));
  return kExitOk;
}

}  // namespace

constinit const CommandSpec kLogs{
    .name = "logs",
    .also = {},
    .summary = "show what a sandbox's first program, or a background command, wrote",
    .usage = "[options] ID [COMMAND_ID]",
    .details =
        "Without a command id: stdout and stderr of the program the sandbox was created with (the last 64 KiB).\n"
        "The bytes come as the program wrote them; pipe them through `cat -v` when you do not trust them.",
    .examples = "opensandbox logs -f 7k2\nopensandbox logs 7k2 6f1d0c0a4b0d4f0e9a52a0c3b8e1f7d2",
    .options = kOptions,
    .operand = Operand::sandbox,
    .min_operands = 1,
    .max_operands = 2,
    .main = logs,
};

}  // namespace osb::cli
