// The launcher's side of the stem (execd/stem.h): starts it, asks it to divide, replaces it now and then.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "enter/plan_message.h"
#include "launch/program_copies.h"

namespace osb::launch {

class Stem {
 public:
  explicit Stem(ProgramCopies& execd) : execd_(execd) {}
  Stem(const Stem&) = delete;
  Stem& operator=(const Stem&) = delete;
  ~Stem() { stop(); }

  // Asks for the first process of the sandbox `id`; the answer comes by next_answer() when fd() is readable.
  Result<> divide(const enter::EnterPlan& plan, std::string id, std::uint64_t now);

  struct Answer {
    std::string id;
    // Ours, on its way into its sandbox; or an errno, negative. -EPIPE: the stem died or was given up, and there may be a child all the
    // same, in the plan's group.
    std::int32_t child = 0;
    ProgramCopy program = {};  // what it runs
  };
  std::optional<Answer> next_answer();

  int fd() const { return socket_ ? socket_.get() : -1; }
  bool take_fresh() { return std::exchange(fresh_, false); }  // true once for each new fd()
  bool has_died();                                            // while nothing was under way
  bool is_busy() const { return !under_way_.empty(); }
  bool has_lost() const { return !lost_.empty(); }
  bool is_silent_since(std::uint64_t moment) const { return is_busy() && under_way_.front().asked_at <= moment; }
  std::size_t under_way() const { return under_way_.size(); }
  // After some divisions only: where no other copy can be had it would be started again for each.
  bool is_crowded() const { return socket_ && divisions_ >= kDivisions / 4 && ProgramCopies::is_crowded(program_); }
  bool wants_change() const { return !is_busy() && (!socket_ || divisions_ >= kDivisions || is_crowded()); }
  // Starts one if none runs or the present one has served its time. Only while it is not busy.
  void freshen();
  void stop();  // next_answer() then tells that whatever was under way is lost

 private:
  // All that came from one stem have their addresses and their stack guard in common; these are drawn anew so often.
  static constexpr unsigned kDivisions = 256;

  Result<> start();
  Result<> send(const enter::PlanMessage& message);

  ProgramCopies& execd_;
  ProgramCopy program_;
  std::int32_t pid_ = 0;
  Fd socket_;
  bool fresh_ = false;
  unsigned divisions_ = 0;
  struct Asked {
    std::string id;
    std::uint64_t asked_at;
  };
  static Answer take(std::deque<Asked>& from, std::int32_t child, ProgramCopy program);
  std::deque<Asked> under_way_;  // in the order of the answers of the stem that runs
  std::deque<Asked> lost_;       // asked of one that is gone
};

}  // namespace osb::launch
