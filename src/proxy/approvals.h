// Commands that wait for a person: questions, their answers, and who may give them.
//
// A question lives until it is answered, its time is over, or whoever asked goes away. Bounded in number; the ends of the
// newest ones stay readable. Every question and every answer is on record before it has an effect.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "audit/audit.h"
#include "base/clock.h"
#include "base/result.h"
#include "model/caller.h"
#include "model/command_policy.h"

namespace osb::proxy {

inline constexpr std::size_t kMaxQuestions = 256;  // of all sandboxes
inline constexpr std::size_t kMaxQuestionsOfSandbox = 32;
inline constexpr std::size_t kKeptQuestions = 256;  // answered ones that can still be read
inline constexpr std::size_t kMaxCommentBytes = 1024;

enum class QuestionState : std::uint8_t { waiting, allowed, denied, expired, withdrawn };
std::string_view name_of(QuestionState state);

struct Question {
  std::string id;
  std::string sandbox;  // id; "" = the first program of a sandbox that is not made yet
  std::string owner;    // key of the sandbox: who may see the question
  std::string asker;    // key that runs the command
  std::string command;  // as it was sent, at most 4 KiB
  std::string part;     // the simple command that a rule applies to
  std::string rule;
  std::string reason;
  WallTime asked_at;
  WallTime expires_at;
  QuestionState state = QuestionState::waiting;
  std::string answered_by;
  std::string comment;
  WallTime answered_at;
};

class Approvals {
 public:
  Approvals(asio::io_context& io, audit::Log& audit);
  ~Approvals();

  // Opens a question; its id is given here. COMMAND::TOO_MANY_QUESTIONS past the bounds.
  Result<std::string> open(Question question, std::chrono::seconds limit, const Caller& caller);
  // Ok when it was allowed; COMMAND::NOT_APPROVED otherwise. A cancelled wait withdraws the question.
  Task<Result<>> wait(std::string id, Caller caller);
  void withdraw(const std::string& id);  // nobody waits for it any more
  void withdraw_of(const std::string& sandbox);

  std::vector<Question> list(const Caller& caller, bool waiting_only) const;  // oldest first
  Result<Question> get(std::string_view id, const Caller& caller) const;
  Result<Question> answer(std::string_view id, bool allow, std::string comment, const Caller& caller);
  bool may_answer(const Question& question, const Caller& caller) const;

  // Grows with every change of any question. wait_change returns when it is past `seen`, at the latest after `limit`.
  std::uint64_t changes() const { return changes_; }
  Task<void> wait_change(std::uint64_t seen, std::chrono::steady_clock::duration limit);
  // Questions that changed after `seen` and that the caller may see, oldest change first.
  std::vector<Question> changed_since(std::uint64_t seen, const Caller& caller) const;

  void set_self_approval(SelfApproval setting) { self_approval_ = setting; }
  bool stopping() const { return stopping_; }
  void stop();  // withdraws everything; watchers wake up

 private:
  struct Entry {
    Question question;
    std::uint64_t changed = 0;
    std::shared_ptr<Timer> wake;  // expires with the question, cancelled when it ends
  };
  Entry* find(std::string_view id);
  const Entry* find(std::string_view id) const;
  static bool sees(const Caller& caller, const Question& question) { return caller.sees_all || caller.name == question.owner; }
  void end(Entry& entry, QuestionState state);
  void note_change(Entry& entry);

  asio::io_context& io_;
  audit::Log& audit_;
  SelfApproval self_approval_ = SelfApproval::privileged;
  std::deque<std::unique_ptr<Entry>> entries_;  // oldest first
  std::size_t waiting_ = 0;
  std::uint64_t changes_ = 0;
  std::set<Timer*> watchers_;  // of wait_change, woken by a change
  bool stopping_ = false;
};

}  // namespace osb::proxy
