#include "proxy/command_gate.h"

#include "async/task_group.h"
#include "base/log.h"
#include "base/text.h"
#include "lifecycle/errors.h"

namespace osb::proxy {
namespace {

// What keeps a sandbox alive and does nothing else: the usual first program of clients that run commands afterwards.
bool only_keeps_alive(const std::vector<std::string>& argv) {
  using Argv = std::vector<std::string>;
  return argv.empty() || argv == Argv{"tail", "-f", "/dev/null"} || argv == Argv{"sleep", "infinity"};
}

// A stored policy that cannot be read any more holds everything back: nobody knows what it would have refused.
std::shared_ptr<const CommandPolicy> closed_policy() {
  auto policy = std::make_shared<CommandPolicy>();
  policy->rules.push_back({"unreadable-policy", {"*"}, {}, {}, {}, CommandAction::deny, "the policy of this sandbox cannot be read"});
  return policy;
}

// The key a command is run with. A token says nothing but that its sandbox's owner gave it away.
std::string asker_of(const Caller& caller, const std::string& owner) { return caller.name == "token" ? owner : caller.name; }

Task<void> withdraw_when_gone(http::Responder& client, Approvals& approvals, std::string id) {
  co_await client.closed();
  approvals.withdraw(id);
}

}  // namespace

CommandGate::CommandGate(asio::io_context& io, lifecycle::Service& lifecycle, audit::Log& audit)
    : lifecycle_(lifecycle), audit_(audit), approvals_(io, audit) {}

void CommandGate::set_settings(GateSettings settings) {
  settings_ = std::move(settings);
  server_judges_ = settings_.policy.judges();
  approvals_.set_self_approval(settings_.self_approval);
}

void CommandGate::forget(const SandboxId& id) {
  policies_.erase(id.text());
  approvals_.withdraw_of(id.text());
}

bool CommandGate::judges(const SandboxId& id) const { return server_judges_ || lifecycle_.has_extension(id, kPolicyExtension); }

bool CommandGate::judges(const SandboxSpec& spec) const {
  return !only_keeps_alive(spec.entrypoint) && (server_judges_ || spec.extensions.contains(kPolicyExtension));
}

std::shared_ptr<const CommandPolicy> CommandGate::policy_of(const std::string& id, const SandboxSpec& spec) {
  auto text = spec.extensions.find(kPolicyExtension);
  if (text == spec.extensions.end()) return nullptr;
  if (auto known = policies_.find(id); !id.empty() && known != policies_.end()) return known->second;
  auto parsed = parse_command_policy(std::string_view(text->second));
  auto policy = parsed ? std::make_shared<const CommandPolicy>(*std::move(parsed)) : closed_policy();
  if (!id.empty()) policies_[id] = policy;
  return policy;
}

CommandVerdict CommandGate::strictest(const CommandPolicy* own, const Command& command) const {
  auto verdict = osb::judge(settings_.policy, command);
  if (!own || verdict.action == CommandAction::deny) return verdict;
  auto of_sandbox = osb::judge(*own, command);
  return of_sandbox.action > verdict.action ? of_sandbox : verdict;
}

std::chrono::seconds CommandGate::limit_for(const CommandPolicy* own) const {
  auto seconds = settings_.ask_timeout_seconds;
  if (own && own->ask_timeout_seconds) seconds = std::min(seconds, *own->ask_timeout_seconds);
  return std::chrono::seconds(seconds);
}

Task<Result<CommandVerdict>> CommandGate::pass(Caller caller, SandboxId id, Command command, Asking asking) {
  const auto* sandbox = lifecycle_.find(id);
  if (!sandbox) co_return lifecycle::unknown_sandbox(id);
  if (!judges(id)) co_return CommandVerdict{};
  auto own = policy_of(id.text(), sandbox->spec);
  auto verdict = strictest(own.get(), command);
  Held held{std::move(caller), id.text(), sandbox->owner, command.shown(), limit_for(own.get())};
  co_return co_await settle(std::move(held), std::move(verdict), std::move(asking));
}

Task<Result<CommandVerdict>> CommandGate::pass_create(Caller caller, SandboxSpec spec, Asking asking) {
  if (!judges(spec)) co_return CommandVerdict{};
  auto own = policy_of({}, spec);
  auto command = Command::of_argv(spec.entrypoint);
  for (const auto& [name, value] : spec.env) command.variables.push_back(name);
  auto verdict = strictest(own.get(), command);
  auto owner = caller.name;
  Held held{std::move(caller), {}, std::move(owner), command.shown(), limit_for(own.get())};
  co_return co_await settle(std::move(held), std::move(verdict), std::move(asking));
}

Error CommandGate::refuse(const Held& held, const CommandVerdict& verdict, Error error) {
  audit::Event event{"command.refused",
                     held.sandbox,
                     error.code(),
                     {{"command", held.command}, {"part", verdict.command}, {"rule", verdict.rule}, {"reason", error.what()}}};
  if (auto done = audit_.record(held.caller, event); !done)
    log::error("refused command not recorded", {{"sandbox", held.sandbox}, {"error", done.error().what()}});
  return error;
}

Task<Result<CommandVerdict>> CommandGate::settle(Held held, CommandVerdict verdict, Asking asking) {
  bool passes = verdict.action == CommandAction::allow || (asking.only_refuse && verdict.action == CommandAction::ask);
  if (passes) co_return verdict;
  if (verdict.action == CommandAction::deny) {
    auto error = Error(Errc::permission_denied, cat("The command is refused: ", verdict.sentence(), "."))
                     .with_code("COMMAND::DENIED")
                     .at(verdict.rule);
    co_return refuse(held, verdict, std::move(error));
  }
  auto answered = co_await ask(held, verdict, std::move(asking));
  if (answered) co_return verdict;
  auto why = std::move(answered).error();
  if (why.kind() != Errc::permission_denied) co_return why;
  auto error = Error(Errc::permission_denied, cat("The command was not approved: ", why.what(), "; ", verdict.sentence(), "."))
                   .with_code(why.code())
                   .at(verdict.rule)
                   .with_hint(why.hint());
  co_return refuse(held, verdict, std::move(error));
}

Task<Result<>> CommandGate::ask(Held held, CommandVerdict verdict, Asking asking) {
  Question question;
  question.sandbox = held.sandbox;
  question.owner = held.owner;
  question.asker = asker_of(held.caller, held.owner);
  question.command = held.command;
  question.part = verdict.command;
  question.rule = verdict.rule;
  question.reason = verdict.reason;
  CO_TRY(auto id, approvals_.open(std::move(question), held.limit, held.caller));
  co_await asio::this_coro::throw_if_cancelled(false);  // whoever cancels us waits until what we started has ended
  auto executor = co_await asio::this_coro::executor;
  TaskGroup lookout(executor);
  if (asking.client) lookout.spawn("watch asker", withdraw_when_gone(*asking.client, approvals_, id));
  if (asking.asked) {
    if (auto opened = approvals_.get(id, Caller{{}, true, {}})) asking.asked(*opened);
  }
  auto answered = co_await approvals_.wait(id, held.caller);
  co_await lookout.stop();
  co_return answered;
}

}  // namespace osb::proxy
