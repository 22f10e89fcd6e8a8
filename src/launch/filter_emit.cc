#include "launch/filter_emit.h"

#include <algorithm>

namespace osb::launch {
namespace {

constexpr std::size_t kLongestJump = 255;
constexpr std::uint16_t kLoadWord = BPF_LD | BPF_W | BPF_ABS;
constexpr std::uint16_t kMask = BPF_ALU | BPF_AND | BPF_K;
constexpr std::uint16_t kReturn = BPF_RET | BPF_K;
constexpr std::uint16_t kJump = BPF_JMP | BPF_JA;
constexpr std::uint16_t kIfEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr std::uint16_t kIfAtLeast = BPF_JMP | BPF_JGE | BPF_K;

// One value that differs from both its neighbours, which agree: one comparison instead of two.
bool is_lone_value(std::span<const Segment> s) { return s.size() == 3 && s[0].target == s[2].target && s[2].start == s[1].start + 1; }

}  // namespace

void add_segment(std::vector<Segment>& segments, std::uint32_t start, Target target) {
  if (!segments.empty() && segments.back().start == start) segments.pop_back();
  if (segments.empty() || segments.back().target != target) segments.push_back({start, target});
}

Target Emitter::tree(std::span<const Segment> s) {
  if (s.size() == 1) return s[0].target;
  if (is_lone_value(s)) return branch(kIfEqual, s[1].start, s[1].target, s[0].target);
  std::size_t half = s.size() / 2;
  Target upper = tree(s.subspan(half));
  Target lower = tree(s.first(half));
  return branch(kIfAtLeast, s[half].start, upper, lower);
}

Target Emitter::load(std::uint32_t offset, std::uint32_t mask, Target next) {
  fall_into(next);
  if (mask != 0xffffffff) emit(kMask, mask);
  return emit(kLoadWord, offset);
}

Target Emitter::branch(std::uint16_t test, std::uint32_t k, Target yes, Target no) {
  if (yes == no) return yes;
  // Reaching `no` may write one instruction more, which puts `yes` one further away.
  Target near_yes = reach(yes, 1);
  Target near_no = reach(no, 0);
  auto distance = [this](Target target) { return static_cast<std::uint8_t>(size() - target.position() - 1); };
  return emit(test, k, distance(near_yes), distance(near_no));
}

std::vector<sock_filter> Emitter::finish(Target entry) && {
  fall_into(entry);
  std::ranges::reverse(reversed_);
  return std::move(reversed_);
}

Target Emitter::emit(std::uint16_t code, std::uint32_t k, std::uint8_t jt, std::uint8_t jf) {
  reversed_.push_back({.code = code, .jt = jt, .jf = jf, .k = k});
  return Target::at(size() - 1);
}

// An instruction that leads to `target`, close enough for a conditional jump written after `extra` more instructions.
Target Emitter::reach(Target target, std::size_t extra) {
  auto is_near = [&](Target at) { return size() + extra - at.position() - 1 <= kLongestJump; };
  if (!target.is_action()) return is_near(target) ? target : materialize(target);
  auto known = std::ranges::find(returns_, target.action(), &std::pair<Action, Target>::first);
  return known != returns_.end() && is_near(known->second) ? known->second : materialize(target);
}

// Writes the one instruction that leads to `target` from here.
Target Emitter::materialize(Target target) {
  if (!target.is_action()) return emit(kJump, static_cast<std::uint32_t>(size() - target.position() - 1));
  Target made = emit(kReturn, target.action().word);
  auto known = std::ranges::find(returns_, target.action(), &std::pair<Action, Target>::first);
  if (known == returns_.end())
    returns_.emplace_back(target.action(), made);
  else
    known->second = made;
  return made;
}

void Emitter::fall_into(Target next) {
  bool is_next = !next.is_action() && next.position() + 1 == size();
  if (!is_next) materialize(next);
}

}  // namespace osb::launch
