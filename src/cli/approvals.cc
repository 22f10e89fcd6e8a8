// opensandbox approvals ls|allow|deny|watch
#include <unistd.h>

#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/each.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/sanitise.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/units.h"
#include "http/http.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

constexpr Millis kWatchStall{60'000};  // the daemon says something every ten seconds
constexpr std::size_t kMaxEvent = 1 << 20;
constexpr std::size_t kCommandColumns = 60;

constexpr std::array kListOptions{
    OptionSpec{"-a,--all", "", "also those that are settled"}, kQuietOption, kOutputOption, kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array kAnswerOptions{OptionSpec{"-c,--comment", "TEXT", "told to whoever asked, and kept in the audit log"}, kOutputOption,
                                    kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array kWatchOptions{kOutputOption, kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array<std::string_view, 2> kListAlso{"approvals list", "approvals"};

Result<std::vector<json::object>> approvals_of(Api& api, bool all) {
  TRY(auto reply, api.call("GET", all ? "/v1/approvals?all=true" : "/v1/approvals"));
  TRY(auto object, parse_object(reply.body));
  const auto* items = object.if_contains("approvals");
  if (items == nullptr || !items->is_array()) return Error(Errc::malformed, "the daemon's list has no approvals");
  std::vector<json::object> out;
  for (const auto& item : items->get_array())
    if (item.is_object()) out.push_back(item.get_object());
  return out;
}

std::string shortened(std::string text) {
  text = sanitise(text);
  return text.size() <= kCommandColumns ? text : cat(std::string_view(text).substr(0, kCommandColumns - 1), "…");
}

Result<int> list_approvals(const Args& args) {
  TRY(auto api, find_daemon(args));
  TRY(auto found, approvals_of(api, args.has("all")));
  if (wants_json(args)) {
    json::array all(found.begin(), found.end());
    CHECK_OK(print(pretty(all)));
    return kExitOk;
  }
  Table table({"ID", "SANDBOX", "STATE", "RULE", "EXPIRES", "COMMAND"});
  std::string ids;
  for (const auto& item : found) {
    ids += cat(text_of(item, "id"), "\n");
    bool waits = text_of(item, "state") == "waiting";
    table.row({text_of(item, "id"), text_of(item, "session_id").substr(0, 12), text_of(item, "state"), text_of(item, "rule"),
               waits ? format_when(text_of(item, "expires_at"), wall_now()) : "-", shortened(text_of(item, "command"))});
  }
  CHECK_OK(print(args.has("quiet") ? ids : table.render()));
  return kExitOk;
}

// A whole id, or what only one that waits begins with.
Result<std::string> resolve(Api& api, const std::string& text) {
  TRY(auto found, approvals_of(api, false));
  std::string match;
  for (const auto& item : found) {
    auto id = text_of(item, "id");
    if (!id.starts_with(text)) continue;
    if (!match.empty()) return Error(Errc::conflict, cat("several approvals begin with '", text, "'")).with_hint("give more of the id");
    match = id;
  }
  return match.empty() ? text : match;
}

Result<json::object> send_answer(Api& api, const std::string& id, std::string_view answer, const std::string& comment) {
  json::object body{{"answer", answer}};
  if (!comment.empty()) body["comment"] = comment;
  TRY(auto reply, api.call("POST", cat("/v1/approvals/", http::percent_encode(id)), json::serialize(body)));
  return parse_object(reply.body);
}

Result<int> answer_all(const Args& args, std::string_view answer) {
  TRY(auto api, find_daemon(args));
  return for_each_name(args, args.operands, [&](const std::string& name) -> Result<std::string> {
    TRY(auto id, resolve(api, name));
    TRY([[maybe_unused]] auto told, send_answer(api, id, answer, args.get("comment")));
    return id;
  });
}

Result<int> allow(const Args& args) { return answer_all(args, "allow"); }
Result<int> deny(const Args& args) { return answer_all(args, "deny"); }

// ---- watch ----------------------------------------------------------------------------------------------------------

// Reads the stream of events; at a terminal it asks, elsewhere it tells.
class Watcher {
 public:
  Watcher(Api& api, bool as_json) : api_(api), as_json_(as_json), asks_(!as_json && ::isatty(STDIN_FILENO) == 1) {}

  bool take(std::string_view bytes) {
    pending_ += bytes;
    for (auto end = pending_.find("\n\n"); end != std::string::npos; end = pending_.find("\n\n")) {
      auto block = pending_.substr(0, end);
      pending_.erase(0, end + 2);
      if (!take_block(block)) return false;
    }
    return pending_.size() <= kMaxEvent;
  }

  bool failed() const { return failed_; }

 private:
  bool take_block(std::string_view block) {
    std::string_view event, data;
    for (auto line : split(block, '\n')) {
      if (line.starts_with("event: ")) event = line.substr(7);
      if (line.starts_with("data: ")) data = line.substr(6);
    }
    auto approval = data.empty() ? Result<json::object>(json::object{}) : parse_object(data);
    if (!approval || data.empty()) return true;
    if (as_json_) return tell(cat(data, "\n"));
    if (event == "settled") return settled(*approval);
    if (!tell(describe(*approval))) return false;
    return !asks_ || ask(*approval);
  }

  static std::string describe(const json::object& approval) {
    auto line = [&](std::string_view title, std::string_view key) {
      auto text = text_of(approval, key);
      return text.empty() ? std::string() : cat("  ", title, std::string(10 - title.size(), ' '), sanitise(text), "\n");
    };
    return cat(text_of(approval, "id"), " waits until ", text_of(approval, "expires_at"), "\n", line("command", "command"),
               line("part", "part"), line("rule", "rule"), line("reason", "reason"), line("sandbox", "session_id"),
               line("asked by", "asked_by"));
  }

  bool settled(const json::object& approval) {
    auto id = text_of(approval, "id");
    if (id == own_) return true;  // told when it was answered
    auto by = text_of(approval, "answered_by");
    return tell(cat(id, " ", text_of(approval, "state"), by.empty() ? "" : " by ", sanitise(by), "\n"));
  }

  bool ask(const json::object& approval) {
    auto id = text_of(approval, "id");
    for (;;) {
      write_all(STDERR_FILENO, "allow it? [y/n, s to skip] ");
      auto typed = read_line();
      if (!typed) return false;
      if (*typed == "s") return true;
      bool yes = *typed == "y" || *typed == "yes", no = *typed == "n" || *typed == "no";
      if (!yes && !no) continue;
      own_ = id;
      auto told = send_answer(api_, id, yes ? "allow" : "deny", {});
      if (!told) complain(told.error());
      return told ? tell(cat(id, " ", text_of(*told, "state"), "\n")) : true;
    }
  }

  // Without a line end; nullopt at the end of the input.
  static std::optional<std::string> read_line() {
    std::string line;
    char c = 0;
    for (;;) {
      auto n = ::read(STDIN_FILENO, &c, 1);
      if (n <= 0) return std::nullopt;
      if (c == '\n') return line;
      if (line.size() < 64) line += c;
    }
  }

  bool tell(const std::string& text) {
    failed_ = !print(text);
    return !failed_;
  }

  Api& api_;
  bool as_json_;
  bool asks_;
  bool failed_ = false;
  std::string own_;
  std::string pending_;
};

Result<int> watch(const Args& args) {
  TRY(auto api, find_daemon(args));
  TRY(auto key, key_for(args, api.address()));
  TRY(auto stream, api.another_connection());
  stream.fail_on_stall(kWatchStall);
  Request request{"GET", "/v1/approvals/watch", {}, {}};
  if (!key.empty()) request.headers.emplace_back("OPEN-SANDBOX-API-KEY", key);
  Watcher watcher(api, wants_json(args));
  std::string refusal;
  bool left = false;
  auto sink = [&](const Reply& head, std::string_view bytes) {
    if (head.status == 200) left = !watcher.take(bytes);
    if (head.status != 200 && refusal.size() < kMaxEvent) refusal += bytes;
    return !left;
  };
  auto reply = stream.fetch(request, Connection::Deadline::max(), sink);
  if (left) return watcher.failed() ? kExitFailure : kExitOk;
  if (!reply) return std::move(reply).error().in("watch approvals");
  if (reply->status != 200) {
    reply->body = std::move(refusal);
    return error_of(*reply);
  }
  return Error(Errc::unavailable, "the daemon ended the stream");
}

}  // namespace

constinit const CommandSpec kApprovalsList{
    .name = "approvals ls",
    .also = kListAlso,
    .summary = "list commands that wait for an answer",
    .usage = "[options]",
    .details = "A command that a rule of the command policy asks about is held until a person allows it or its time is over.",
    .examples = "opensandbox approvals\nopensandbox approvals ls --all -o json",
    .options = kListOptions,
    .main = list_approvals,
};

constinit const CommandSpec kApprovalsAllow{
    .name = "approvals allow",
    .also = {},
    .summary = "let commands run that wait for an answer",
    .usage = "[options] ID...",
    .details = "The beginning of an id is enough. Who answered, when and what is kept in the audit log.",
    .examples = "opensandbox approvals allow 3kq --comment 'seen by me'",
    .options = kAnswerOptions,
    .operand = Operand::approval,
    .min_operands = 1,
    .max_operands = 100,
    .main = allow,
};

constinit const CommandSpec kApprovalsDeny{
    .name = "approvals deny",
    .also = {},
    .summary = "refuse commands that wait for an answer",
    .usage = "[options] ID...",
    .details = "The beginning of an id is enough. The comment is part of what the caller is told.",
    .examples = "opensandbox approvals deny 3kq --comment 'ask me first'",
    .options = kAnswerOptions,
    .operand = Operand::approval,
    .min_operands = 1,
    .max_operands = 100,
    .main = deny,
};

constinit const CommandSpec kApprovalsWatch{
    .name = "approvals watch",
    .also = {},
    .summary = "show questions as they come, and ask at a terminal",
    .usage = "[options]",
    .details = "At a terminal each question is asked: y allows, n denies, s leaves it to others. With -o json one object a line.",
    .examples = "opensandbox approvals watch",
    .options = kWatchOptions,
    .main = watch,
};

}  // namespace osb::cli
