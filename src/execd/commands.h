// Commands: what clients can still ask about by id. Running ones, and the last that have ended.
//
// Bounded in number (256 running, 256 ended) and in time (an hour after the end); what is too old goes when somebody
// looks, so nothing ticks while the sandbox is idle. The output kept for background commands shares its memory with what is
// kept of runs (output_budget.h).
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "execd/output_budget.h"
#include "execd/process.h"
#include "execd/ring.h"

namespace osb::execd {

struct Command {
  std::string id;       // 32 hex digits
  std::string content;  // the command's text, shortened when it is very long
  std::shared_ptr<Process> process;
  std::unique_ptr<Ring> output;  // background only
  bool forgotten = false;        // nobody can ask any more; what it still writes is dropped

  // Takes what is in the pipe right now: a status seen as ended means that its logs are complete.
  void catch_up();
  void keep(std::string_view bytes);
};

class Commands final : public OutputKeeper {
 public:
  static constexpr std::size_t kMaxRunning = 256;
  static constexpr std::size_t kMaxEnded = 256;
  static constexpr std::int64_t kKeepNanos = 3600LL * 1'000'000'000;
  static constexpr std::size_t kMaxContent = 4096;
  static constexpr std::size_t kRingBytes = 1024 * 1024;

  explicit Commands(OutputBudget& budget) : budget_(budget) { budget_.add(*this); }

  std::shared_ptr<Command> add(std::string id, std::string_view content, std::shared_ptr<Process> process, bool background);
  std::shared_ptr<Command> find(std::string_view id);
  std::size_t size() const { return commands_.size(); }

  bool release_oldest(const void* asker) override;

 private:
  void forget_old();

  OutputBudget& budget_;
  std::vector<std::shared_ptr<Command>> commands_;  // oldest first
};

}  // namespace osb::execd
