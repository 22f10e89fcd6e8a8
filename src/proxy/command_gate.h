// The gate every command passes before it goes to a sandbox: the server's policy and the sandbox's own, the stricter of the two.
//
// allow: goes on at once. deny: COMMAND::DENIED with the rule. ask: held until a person answers (approvals.h), and COMMAND::NOT_APPROVED
// when nobody allows it in time. Refusals are on record. Where no policy judges anything the gate costs one look.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "async/task.h"
#include "audit/audit.h"
#include "base/id.h"
#include "base/result.h"
#include "http/http.h"
#include "lifecycle/service.h"
#include "model/caller.h"
#include "model/command_policy.h"
#include "model/sandbox.h"
#include "proxy/approvals.h"

namespace osb::proxy {

struct GateSettings {
  CommandPolicy policy;
  std::uint32_t ask_timeout_seconds = 60;
  SelfApproval self_approval = SelfApproval::privileged;
};

// How a command that must be asked for waits. All of it is optional.
struct Asking {
  http::Responder* client = nullptr;                // hanging up withdraws the question; it outlives the wait
  std::function<void(const Question&)> asked = {};  // told once, when the question is open
  bool only_refuse = false;                         // what would be asked passes: it was asked before
};

class CommandGate {
 public:
  CommandGate(asio::io_context& io, lifecycle::Service& lifecycle, audit::Log& audit);
  void set_settings(GateSettings settings);

  // May `command` run in the sandbox? The value is the verdict that let it pass; an error is the refusal, Errc::permission_denied with
  // COMMAND::DENIED or COMMAND::NOT_APPROVED, for the caller to render. Cancelling withdraws a question; so does `client`, when given, by
  // hanging up. Call it after the request's body is read and before the command is recorded as started.
  Task<Result<CommandVerdict>> pass(Caller caller, SandboxId id, Command command, Asking asking = {});
  // The same for the first program of a sandbox that is about to be made; what only keeps a sandbox alive passes.
  Task<Result<CommandVerdict>> pass_create(Caller caller, SandboxSpec spec, Asking asking = {});

  // false: pass() and pass_create() would allow everything; whoever asks first saves the copies.
  bool judges(const SandboxId& id) const;
  bool judges(const SandboxSpec& spec) const;
  Approvals& approvals() { return approvals_; }
  void forget(const SandboxId& id);  // the sandbox ended
  void stop() { approvals_.stop(); }

 private:
  struct Held {
    Caller caller;
    std::string sandbox;
    std::string owner;
    std::string command;
    std::chrono::seconds limit;
  };
  std::shared_ptr<const CommandPolicy> policy_of(const std::string& id, const SandboxSpec& spec);
  CommandVerdict strictest(const CommandPolicy* own, const Command& command) const;
  std::chrono::seconds limit_for(const CommandPolicy* own) const;
  Task<Result<CommandVerdict>> settle(Held held, CommandVerdict verdict, Asking asking);
  Task<Result<>> ask(Held held, CommandVerdict verdict, Asking asking);
  Error refuse(const Held& held, const CommandVerdict& verdict, Error error);

  lifecycle::Service& lifecycle_;
  audit::Log& audit_;
  GateSettings settings_;
  bool server_judges_ = false;  // settings_.policy.judges(), looked at for every command
  Approvals approvals_;
  std::map<std::string, std::shared_ptr<const CommandPolicy>, std::less<>> policies_;  // parsed ones of sandboxes that have one
};

}  // namespace osb::proxy
