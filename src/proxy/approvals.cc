#include "proxy/approvals.h"

#include <algorithm>

#include "base/id.h"
#include "base/log.h"
#include "base/text.h"

namespace osb::proxy {
namespace {

Error no_such_question(std::string_view id) {
  return Error(Errc::not_found, cat("There is no approval ", json_string(id.substr(0, 64)), ".")).with_code("COMMAND::APPROVAL_NOT_FOUND");
}

Error not_approved(std::string_view why) { return Error(Errc::permission_denied, std::string(why)).with_code("COMMAND::NOT_APPROVED"); }

}  // namespace

std::string_view name_of(QuestionState state) {
  switch (state) {
    case QuestionState::waiting: return "waiting";
    case QuestionState::allowed: return "allowed";
    case QuestionState::denied: return "denied";
    case QuestionState::expired: return "expired";
    case QuestionState::withdrawn: return "withdrawn";
  }
  return "withdrawn";
}

Approvals::Approvals(asio::io_context& io, audit::Log& audit) : io_(io), audit_(audit) {}

Approvals::~Approvals() = default;

const Approvals::Entry* Approvals::find(std::string_view id) const {
  auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry->question.id == id; });
  return found == entries_.end() ? nullptr : found->get();
}

Approvals::Entry* Approvals::find(std::string_view id) { return const_cast<Entry*>(std::as_const(*this).find(id)); }

void Approvals::note_change(Entry& entry) {
  entry.changed = ++changes_;
  for (auto* watcher : watchers_) watcher->cancel();
}

void Approvals::end(Entry& entry, QuestionState state) {
  if (entry.question.state != QuestionState::waiting) return;
  entry.question.state = state;
  if (entry.question.answered_at.micros == 0) entry.question.answered_at = wall_now();
  --waiting_;
  entry.wake->cancel();
  note_change(entry);
}

Result<std::string> Approvals::open(Question question, std::chrono::seconds limit, const Caller& caller) {
  auto of_sandbox = std::count_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry->question.state == QuestionState::waiting && entry->question.sandbox == question.sandbox;
  });
  if (stopping_ || waiting_ >= kMaxQuestions || static_cast<std::size_t>(of_sandbox) >= kMaxQuestionsOfSandbox)
    return Error(Errc::permission_denied, "The command needs an approval, and too many others wait for one.")
        .with_code("COMMAND::TOO_MANY_QUESTIONS")
        .with_hint("answer some of those that wait, or try again later");
  question.id = random_id_text();
  question.asked_at = wall_now();
  question.expires_at = WallTime{question.asked_at.micros + std::chrono::microseconds(limit).count()};
  question.state = QuestionState::waiting;
  audit::Event event{"command.ask",
                     question.sandbox,
                     "ok",
                     {{"approval", question.id},
                      {"command", question.command},
                      {"part", question.part},
                      {"rule", question.rule},
                      {"reason", question.reason},
                      {"owner", question.owner},
                      {"seconds", cat(limit.count())}}};
  if (auto recorded = audit_.record(caller, event); !recorded)
    return std::move(recorded).error().in("record question").with_code("GENERAL::AUDIT_UNAVAILABLE");
  // The oldest that is over makes room; those that wait are fewer than may be kept.
  while (entries_.size() >= kKeptQuestions + waiting_) {
    auto over = std::find_if(entries_.begin(), entries_.end(), [](const auto& e) { return e->question.state != QuestionState::waiting; });
    if (over == entries_.end()) break;
    entries_.erase(over);
  }
  auto id = question.id;
  auto entry = std::make_unique<Entry>();
  entry->question = std::move(question);
  entry->wake = std::make_shared<Timer>(io_.get_executor(), limit);
  note_change(*entry);
  ++waiting_;
  entries_.push_back(std::move(entry));
  return id;
}

Task<Result<>> Approvals::wait(std::string id, Caller caller) {
  // Whatever ends this wait (also its frame being destroyed), nobody waits for the answer afterwards.
  struct Leaving {
    Approvals& approvals;
    const std::string& id;
    ~Leaving() { approvals.withdraw(id); }
  } leaving{*this, id};
  auto* entry = find(id);
  if (!entry) co_return no_such_question(id);
  auto wake = entry->wake;
  bool in_time = true;
  if (entry->question.state == QuestionState::waiting) {
    auto [aborted] = co_await wake->async_wait(nothrow);
    in_time = static_cast<bool>(aborted);
  }
  entry = find(id);
  if (!entry) co_return no_such_question(id);
  if (!in_time) end(*entry, QuestionState::expired);
  const auto& question = entry->question;
  switch (question.state) {
    case QuestionState::allowed: co_return Ok{};
    case QuestionState::denied:
      co_return not_approved(cat(question.answered_by, " did not approve it", question.comment.empty() ? "" : ": ", question.comment));
    case QuestionState::expired: co_return not_approved("nobody approved it in time");
    case QuestionState::waiting:  // we are cancelled
    case QuestionState::withdrawn: break;
  }
  co_return not_approved("the question was withdrawn");
}

void Approvals::withdraw(const std::string& id) {
  if (auto* entry = find(id)) end(*entry, QuestionState::withdrawn);
}

void Approvals::withdraw_of(const std::string& sandbox) {
  for (auto& entry : entries_)
    if (entry->question.sandbox == sandbox) end(*entry, QuestionState::withdrawn);
}

std::vector<Question> Approvals::list(const Caller& caller, bool waiting_only) const {
  std::vector<Question> out;
  for (const auto& entry : entries_) {
    const auto& question = entry->question;
    if (sees(caller, question) && (!waiting_only || question.state == QuestionState::waiting)) out.push_back(question);
  }
  return out;
}

Result<Question> Approvals::get(std::string_view id, const Caller& caller) const {
  const auto* entry = find(id);
  if (!entry || !sees(caller, entry->question)) return no_such_question(id);
  return entry->question;
}

bool Approvals::may_answer(const Question& question, const Caller& caller) const {
  if (!sees(caller, question)) return false;
  if (caller.name != question.asker || self_approval_ == SelfApproval::always) return true;
  return self_approval_ == SelfApproval::privileged && caller.sees_all;
}

Result<Question> Approvals::answer(std::string_view id, bool allow, std::string comment, const Caller& caller) {
  auto* entry = find(id);
  if (!entry || !sees(caller, entry->question)) return no_such_question(id);
  auto& question = entry->question;
  if (!may_answer(question, caller))
    return Error(Errc::permission_denied, "The key that runs a command may not answer for it.")
        .with_code("COMMAND::SELF_APPROVAL")
        .with_hint("answer with another key, or set command_policy.self_approval");
  if (question.state != QuestionState::waiting)
    return Error(Errc::conflict, cat("Approval ", question.id, " is ", name_of(question.state), " already."))
        .with_code("COMMAND::ALREADY_ANSWERED");
  audit::Event event{"command.answer",
                     question.sandbox,
                     "ok",
                     {{"approval", question.id},
                      {"answer", allow ? "allow" : "deny"},
                      {"command", question.command},
                      {"part", question.part},
                      {"rule", question.rule},
                      {"asker", question.asker}}};
  if (!comment.empty()) event.detail.emplace_back("comment", comment);
  if (auto recorded = audit_.record(caller, event); !recorded)
    return std::move(recorded).error().in("record answer").with_code("GENERAL::AUDIT_UNAVAILABLE");
  question.answered_by = caller.name;
  question.comment = std::move(comment);
  question.answered_at = wall_now();
  end(*entry, allow ? QuestionState::allowed : QuestionState::denied);
  return question;
}

Task<void> Approvals::wait_change(std::uint64_t seen, std::chrono::steady_clock::duration limit) {
  if (changes_ > seen || stopping_) co_return;
  struct Watcher {
    std::set<Timer*>& watchers;
    Timer timer;
    ~Watcher() { watchers.erase(&timer); }
  } watcher{watchers_, Timer(io_.get_executor(), limit)};
  watchers_.insert(&watcher.timer);
  [[maybe_unused]] auto done = co_await watcher.timer.async_wait(nothrow);
}

std::vector<Question> Approvals::changed_since(std::uint64_t seen, const Caller& caller) const {
  std::vector<const Entry*> changed;
  for (const auto& entry : entries_)
    if (entry->changed > seen && sees(caller, entry->question)) changed.push_back(entry.get());
  std::sort(changed.begin(), changed.end(), [](const auto* a, const auto* b) { return a->changed < b->changed; });
  std::vector<Question> out;
  for (const auto* entry : changed) out.push_back(entry->question);
  return out;
}

void Approvals::stop() {
  stopping_ = true;
  for (auto& entry : entries_) end(*entry, QuestionState::withdrawn);
  for (auto* watcher : watchers_) watcher->cancel();
}

}  // namespace osb::proxy
