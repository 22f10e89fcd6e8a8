#include <boost/asio/experimental/awaitable_operators.hpp>
#include <chrono>

#include "session/live.h"

namespace osb::session {
namespace {

constexpr auto kStill = std::chrono::seconds(3);  // as often as execd says that a command is still there

Approval approval_of(const proxy::Question& question) {
  Approval out;
  out.id = question.id;
  out.session_id = question.sandbox;
  out.command = question.command;
  out.rule = question.rule;
  out.reason = question.reason;
  out.state = proxy::name_of(question.state);
  out.asked_by = question.asker;
  out.asked_at = question.asked_at;
  out.expires_at = question.expires_at;
  out.answered_by = question.answered_by;
  if (question.answered_at.micros != 0) out.answered_at = question.answered_at;
  out.comment = question.comment;
  return out;
}

}  // namespace

struct LiveService::Holding {
  explicit Holding(Executor executor) : bell(executor, Timer::time_point::max()) {}
  std::optional<Approval> held;
  std::optional<Result<std::unique_ptr<proxy::Exchange>>> answer;
  Timer bell;  // cancelled when one of the two above has come
};

// While a person is asked the reader is told so, and hears now and then that the wait goes on. Two tasks, each of which ends by itself
// when the other has: nothing is cut off in the middle of a write.
Task<Result<std::unique_ptr<proxy::Exchange>>> LiveService::ask_held(SandboxId id, http::ClientRequest request, Caller caller,
                                                                     EventSink& sink) {
  using namespace asio::experimental::awaitable_operators;
  if (!proxy_.gate().judges(id)) co_return co_await ask(std::move(id), std::move(request), std::move(caller));
  auto holding = std::make_shared<Holding>(tasks_.executor());
  auto asking = ask_and_ring(holding, std::move(id), std::move(request), std::move(caller));
  auto telling = tell_held(holding, sink);
  co_await (std::move(asking) && std::move(telling));
  co_return *std::move(holding->answer);
}

Task<void> LiveService::ask_and_ring(std::shared_ptr<Holding> holding, SandboxId id, http::ClientRequest request, Caller caller) {
  proxy::Asking asking;
  asking.asked = [holding](const proxy::Question& question) {
    holding->held = approval_of(question);
    holding->bell.cancel();
  };
  auto answer = co_await ask(std::move(id), std::move(request), std::move(caller), std::move(asking));
  holding->answer.emplace(std::move(answer));
  holding->bell.cancel();
}

// A reader that is gone asks nothing any more.
Task<void> LiveService::tell_held(std::shared_ptr<Holding> holding, EventSink& sink) {
  while (!holding->answer && !holding->held) co_await holding->bell.async_wait(nothrow);
  if (holding->answer) co_return;
  auto id = holding->held->id;
  ExecEvent event{0, Held{*holding->held}};
  auto told = co_await sink.take(std::move(event));
  while (told && !holding->answer) {
    holding->bell.expires_after(kStill);
    co_await holding->bell.async_wait(nothrow);
    if (!holding->answer) told = co_await sink.still();
  }
  if (!told) proxy_.gate().approvals().withdraw(id);
}

std::vector<Approval> LiveService::approvals(const Caller& caller) const {
  std::vector<Approval> out;
  for (const auto& question : proxy_.gate().approvals().list(caller, true)) out.push_back(approval_of(question));
  return out;
}

Task<Result<Approval>> LiveService::answer_approval(std::string id, bool allow, std::string comment, Caller caller) {
  CO_TRY(auto question, proxy_.gate().approvals().answer(id, allow, std::move(comment), caller));
  co_return approval_of(question);
}

}  // namespace osb::session
