// Commands and terminals in the audit log: recorded before they are forwarded (or not forwarded at all), and again when they end.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "audit/audit.h"
#include "base/id.h"
#include "base/result.h"
#include "http/router.h"
#include "model/caller.h"
#include "proxy/watch.h"

namespace osb::proxy {

inline constexpr std::size_t kAuditedText = 4096;                  // bytes of a command kept in the record
inline constexpr std::size_t kCommandBodyBytes = 2 * 1024 * 1024;  // a larger command is refused; it may carry its input

// How the end of a command is told.
enum class Told { by_events, by_frames, by_hangup, at_once };

// Which requests to execd are commands. Uses the same router as execd, so that both agree on what a path means and no
// spelling of "/command" gets past the record.
class CommandRoutes {
 public:
  CommandRoutes();
  // What the command policy looks at. attach: a terminal that was judged when it was made.
  enum class Judged : std::uint8_t { nothing, line, argv, code, context, terminal, attach };
  struct Kind {
    std::string_view action;  // "command.start", "command.interrupt", "terminal.attach", ...; "" = not recorded
    Told told;
    std::string_view end = "command.end";  // what the end is called
    Judged judged = Judged::nothing;
  };
  std::optional<Kind> find(std::string_view method, std::string_view path) const;
  // A request that asks execd to pass it on to execd: it would run a command without a record.
  bool leads_back(std::string_view path) const;

 private:
  http::Router router_;
  http::Router passed_on_;
};

// One command on its way: start() was recorded, finish() records the end once.
class CommandRecord {
 public:
  // Errc::unavailable when the record cannot be written; the command must not run then.
  static Result<CommandRecord> start(audit::Log& log, Caller caller, const SandboxId& id, CommandRoutes::Kind kind, std::string_view target,
                                     std::string_view body);
  void finish(int http_status);  // 0 = no answer came
  Watch* watch() { return watch_.get(); }

 private:
  CommandRecord(audit::Log& log, Caller caller, const SandboxId& id) : log_(&log), caller_(std::move(caller)), id_(id.text()) {}
  audit::Log* log_;
  Caller caller_;
  std::string id_;
  std::string_view end_;
  std::int64_t started_nanos_ = 0;
  std::unique_ptr<Watch> watch_;
};

}  // namespace osb::proxy
