// Writes a classic-BPF program from its end to its start, so that every jump knows its target.
//
// A jump has eight bits for its distance. What is out of reach is brought near with one more instruction: a second
// copy of the same return, or an unconditional jump, whose distance has 32 bits.
#pragma once
#include <linux/filter.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "launch/filter_table.h"

namespace osb::launch {

// Where a path goes on: it ends with an action, or continues at an instruction written before.
class Target {
 public:
  Target(Action action) : action_(action) {}
  static Target at(std::size_t position) {
    Target target(kKill);
    target.position_ = position + 1;
    return target;
  }
  bool is_action() const { return position_ == 0; }
  Action action() const { return action_; }
  std::size_t position() const { return position_ - 1; }
  bool operator==(const Target&) const = default;

 private:
  Action action_;
  std::size_t position_ = 0;  // one more than the instruction's distance from the end; 0 = an action
};

// From `start` up to the next segment's start, go to `target`.
struct Segment {
  std::uint32_t start;
  Target target;
};

// Appends, merging with the segment before when both go to the same place. Starts never descend.
void add_segment(std::vector<Segment>& segments, std::uint32_t start, Target target);

class Emitter {
 public:
  // Decides by the accumulator's value. `segments` begins at 0.
  Target tree(std::span<const Segment> segments);

  // Loads a word of seccomp_data (masked, if the mask is not full) and goes on at `next`.
  Target load(std::uint32_t offset, std::uint32_t mask, Target next);

  Target branch(std::uint16_t test, std::uint32_t k, Target yes, Target no);

  std::size_t size() const { return reversed_.size(); }
  std::vector<sock_filter> finish(Target entry) &&;

 private:
  Target emit(std::uint16_t code, std::uint32_t k, std::uint8_t jt = 0, std::uint8_t jf = 0);
  Target reach(Target target, std::size_t extra);
  Target materialize(Target target);
  void fall_into(Target next);

  std::vector<sock_filter> reversed_;
  std::vector<std::pair<Action, Target>> returns_;  // the latest return of each action
};

}  // namespace osb::launch
