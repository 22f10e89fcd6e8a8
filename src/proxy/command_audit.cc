#include "proxy/command_audit.h"

#include <boost/json/serialize.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "model/json.h"
#include "proxy/tokens.h"

namespace osb::proxy {
namespace {

using Detail = std::vector<std::pair<std::string, std::string>>;

void add_text(Detail& detail, std::string_view name, std::string_view text) {
  detail.emplace_back(name, text.substr(0, kAuditedText));
  if (text.size() <= kAuditedText) return;
  // The rest is not kept, but whoever has the text can show that it was this one.
  detail.emplace_back("bytes", cat(text.size()));
  detail.emplace_back("sha256", sha256_hex(text));
}

void add_member(Detail& detail, const boost::json::object& from, std::string_view name, std::string_view as) {
  const auto* value = from.if_contains(name);
  if (value && value->is_string()) detail.emplace_back(as, std::string_view(value->get_string()).substr(0, 128));
}

// What will run: the shell text, the argument list, or the code.
std::optional<std::string> command_text(const boost::json::object& body) {
  for (std::string_view name : {"command", "code"})
    if (const auto* value = body.if_contains(name); value && value->is_string()) return std::string(value->get_string());
  if (const auto* argv = body.if_contains("argv")) return boost::json::serialize(*argv);
  return std::nullopt;
}

// "/files?path=/a&path=/b": the paths as execd reads them.
void add_paths(Detail& detail, std::string_view target) {
  auto question = target.find('?');
  auto pairs = http::parse_query(question == target.npos ? std::string_view{} : target.substr(question + 1));
  std::string paths;
  for (std::size_t i = 0; pairs && i < pairs->size(); ++i)
    if ((*pairs)[i].first == "path") paths += paths.empty() ? (*pairs)[i].second : cat("\n", (*pairs)[i].second);
  if (!paths.empty()) add_text(detail, "paths", paths);
}

// execd may read a body that our stricter parser refuses; then the bytes themselves are the record.
Detail describe(std::string_view target, std::string_view body) {
  Detail detail{{"target", std::string(target.substr(0, 512))}};
  add_paths(detail, target);
  auto object = parse_json_object(body, {.bytes = kCommandBodyBytes});
  auto text = object ? command_text(*object) : std::nullopt;
  if (!body.empty()) add_text(detail, text ? "command" : "body", text ? std::string_view(*text) : body);
  if (!object) return detail;
  if (const auto* cwd = object->if_contains("cwd"); cwd && cwd->is_string())
    detail.emplace_back("cwd", std::string_view(cwd->get_string()).substr(0, 1024));
  if (const auto* context = object->if_contains("context"); context && context->is_object()) {
    add_member(detail, context->get_object(), "language", "language");
    add_member(detail, context->get_object(), "id", "context");
  }
  if (const auto* background = object->if_contains("background"); background && background->is_bool() && background->get_bool())
    detail.emplace_back("background", "true");
  if (object->contains("tty")) detail.emplace_back("tty", "true");
  return detail;
}

std::unique_ptr<Watch> watch_for(Told told) {
  switch (told) {
    case Told::by_events: return std::make_unique<EventWatch>();
    case Told::by_frames: return std::make_unique<FrameWatch>();
    case Told::by_hangup: return std::make_unique<HangupWatch>();
    case Told::at_once: return nullptr;
  }
  return nullptr;
}

http::Router::RouteHandler no_handler() { return {}; }

}  // namespace

CommandRoutes::CommandRoutes() {
  for (auto pattern : {"/command", "/osb/v1/exec", "/session/{id}/run", "/code", "/code/context"})
    router_.add("POST", pattern, no_handler());
  for (auto pattern : {"/command", "/code"}) router_.add("DELETE", pattern, no_handler());
  router_.add("POST", "/session", no_handler());
  router_.add("DELETE", "/session/{id}", no_handler());
  router_.add("GET", "/osb/v1/runs/{id}/events", no_handler());
  for (auto pattern : {"/files", "/directories"}) router_.add("DELETE", pattern, no_handler());
  router_.add("POST", "/files/mv", no_handler());
  router_.add("POST", "/pty", no_handler());
  router_.add("DELETE", "/pty/{id}", no_handler());
  router_.add("GET", "/pty/{id}/ws", no_handler());
  for (auto pattern : {"/proxy/{port}", "/proxy/{port}/{path*}"}) passed_on_.add("*", pattern, no_handler());
}

bool CommandRoutes::leads_back(std::string_view path) const {
  bool plain = path.find('%') == path.npos;
  if (plain && !path.starts_with("/proxy/")) return false;  // nearly every request
  auto match = passed_on_.find("GET", path);
  if (!match.route) return false;
  auto port = parse_int<std::uint64_t>(match.params.find("port")->second);
  return port && *port == kExecdPort;
}

std::optional<CommandRoutes::Kind> CommandRoutes::find(std::string_view method, std::string_view path) const {
  auto match = router_.find(method, path);
  if (!match.route) return std::nullopt;
  if (match.route->pattern == "/pty/{id}/ws") return Kind{"terminal.attach", Told::by_hangup, "terminal.detach", Judged::attach};
  if (match.route->pattern == "/pty") return Kind{"terminal.create", Told::at_once, {}, Judged::terminal};
  if (match.route->pattern == "/pty/{id}") return Kind{"terminal.delete", Told::at_once};
  if (match.route->pattern == "/session") return Kind{"session.start", Told::at_once};
  if (match.route->pattern == "/session/{id}") return Kind{"session.end", Told::at_once};
  // A client that was cut off reads on: the end, which the first record may lack, is heard here.
  if (match.route->method == "GET") return Kind{"command.resume", Told::by_events};
  if (match.route->pattern == "/files/mv") return Kind{"file.move", Told::at_once};
  if (match.route->pattern == "/files") return Kind{"file.delete", Told::at_once};
  if (match.route->pattern == "/directories") return Kind{"directory.delete", Told::at_once};
  if (match.route->method == "DELETE") return Kind{"command.interrupt", Told::at_once};
  if (match.route->pattern == "/code/context") return Kind{"", Told::at_once, {}, Judged::context};
  if (match.route->pattern == "/osb/v1/exec") return Kind{"command.start", Told::by_frames, "command.end", Judged::argv};
  return Kind{"command.start", Told::by_events, "command.end", match.route->pattern == "/code" ? Judged::code : Judged::line};
}

Result<CommandRecord> CommandRecord::start(audit::Log& log, Caller caller, const SandboxId& id, CommandRoutes::Kind kind,
                                           std::string_view target, std::string_view body) {
  CommandRecord record(log, std::move(caller), id);
  audit::Event event{std::string(kind.action), record.id_, "ok", describe(target, body)};
  CHECK_OK(log.record(record.caller_, event));
  record.started_nanos_ = boot_now_nanos();
  record.watch_ = watch_for(kind.told);
  record.end_ = kind.end;
  return record;
}

void CommandRecord::finish(int http_status) {
  if (!watch_) return;
  const auto& end = watch_->end();
  bool refused = http_status >= 400;
  audit::Event event{std::string(end_), id_, refused ? "refused" : end ? "ok" : "unknown", {}};
  if (end && !end->exit_code.empty()) event.detail.emplace_back("exit_code", end->exit_code);
  if (end && !end->cause.empty()) event.detail.emplace_back("cause", end->cause);
  if (!end || refused) event.detail.emplace_back("http_status", cat(http_status));
  event.detail.emplace_back("duration_ms", cat((boot_now_nanos() - started_nanos_) / 1'000'000));
  if (auto done = log_->record(caller_, event); !done)
    log::error("command end not recorded", {{"sandbox", id_}, {"error", done.error().what()}});
  watch_.reset();
}

}  // namespace osb::proxy
