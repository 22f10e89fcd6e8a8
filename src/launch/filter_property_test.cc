// Random tables: the compiled tree, the linear program and the table itself always agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "launch/filter_emit.h"
#include "launch/filter_reference.h"

namespace osb::launch {
namespace {

using reference::OpenTable;

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  std::uint32_t below(std::uint32_t limit) { return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(engine_); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  template <class T, std::size_t N>
  T pick(const T (&from)[N]) {
    return from[below(static_cast<std::uint32_t>(N))];
  }

 private:
  std::mt19937 engine_;
};

constexpr Action kActions[] = {kAllow, kAllow, kAllow, refuse(EPERM), refuse(EACCES), kKill, kUnknownCall};

reference::OpenCondition random_condition(Dice& dice) {
  reference::OpenCondition condition;
  condition.arg = static_cast<std::uint8_t>(dice.below(6));
  condition.mask = dice.pick({0xffffffffu, 0xfu, 0xf000u, 0x7e020000u});
  std::set<std::uint32_t> values;
  std::uint32_t count = 1 + dice.below(dice.one_in(4) ? 300 : 5);
  for (std::uint32_t i = 0; i < count; ++i) values.insert((dice.one_in(8) ? dice.below(0xffffffff) : dice.below(1000)) & condition.mask);
  if (dice.one_in(5)) values.insert(condition.mask);
  condition.values.assign(values.begin(), values.end());
  return condition;
}

reference::OpenRule random_rule(Dice& dice, std::uint32_t nr) {
  reference::OpenRule rule{nr, {}, dice.pick(kActions)};
  for (std::uint32_t c = dice.below(4); c > 0; --c) {
    reference::OpenCase& one = rule.cases.emplace_back(std::vector<reference::OpenCondition>(), dice.pick(kActions));
    for (std::uint32_t w = dice.below(4); w > 0; --w) one.when.push_back(random_condition(dice));
  }
  return rule;
}

// Neighbours often share an action, as they do in real tables; `density` says how many numbers are named at all.
OpenTable random_table(Dice& dice, std::uint32_t numbers, std::uint32_t density) {
  OpenTable table(dice.one_in(2) ? Arch::x86_64 : Arch::aarch64);
  Action action = kAllow;
  for (std::uint32_t nr = 0; nr < numbers; ++nr) {
    if (dice.below(100) >= density) continue;
    if (dice.one_in(3)) action = dice.pick(kActions);
    if (table.rules.size() < 12 && dice.one_in(20))
      table.rules.push_back(random_rule(dice, nr));
    else
      table.rows.push_back({nr, action});
  }
  return table;
}

Arguments random_arguments(Dice& dice) {
  Arguments args{};
  for (auto& arg : args) {
    arg = dice.one_in(3) ? dice.below(0xffffffff) : dice.below(1000);
    if (dice.one_in(2)) arg |= std::uint64_t{dice.below(0xffffffff)} << 32;
  }
  return args;
}

void expect_agreement(Dice& dice, const Table& table, std::uint32_t numbers) {
  auto tree = compile_table(table);
  ASSERT_TRUE(tree);
  auto check = [&](std::uint32_t nr, const Arguments& args) {
    ASSERT_EQ(simulate(*tree, table.arch, nr, args).word, reference::decide(table, nr, args).word) << nr;
  };
  for (std::uint32_t nr = 0; nr <= numbers; ++nr) check(nr, random_arguments(dice));
  for (std::uint32_t nr : {kX32Bit - 1, kX32Bit, kX32Bit + 1, kSkippedCall - 1, kSkippedCall}) check(nr, random_arguments(dice));
  for (const ArgumentRule& rule : table.rules)
    for (int i = 0; i < 500; ++i) {
      Arguments args = random_arguments(dice);
      // Half of the time aim at a value the rule names; chance alone would hardly ever meet one.
      for (const Case& one : rule.cases)
        for (const Condition& condition : one.when)
          if (dice.one_in(2)) args[condition.arg] = condition.values[dice.below(static_cast<std::uint32_t>(condition.values.size()))];
      check(rule.nr, args);
    }
}

TEST(FilterProperty, SmallRandomTablesCompileToWhatTheySay) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Dice dice(seed);
    std::uint32_t numbers = 1 + dice.below(60);
    OpenTable open = random_table(dice, numbers, 1 + dice.below(100));
    SCOPED_TRACE(seed);
    expect_agreement(dice, open.table(), numbers);
  }
}

TEST(FilterProperty, LargeRandomTablesNeedLongJumpsAndStillCompileToWhatTheySay) {
  std::size_t with_long_jump = 0;
  for (unsigned seed = 1000; seed < 1020; ++seed) {
    Dice dice(seed);
    OpenTable open = random_table(dice, 1000, 60);
    SCOPED_TRACE(seed);
    expect_agreement(dice, open.table(), 1000);
    Filter tree = *compile_table(open.table());
    with_long_jump += std::ranges::any_of(tree.code, [](const sock_filter& at) { return at.code == (BPF_JMP | BPF_JA); });
  }
  EXPECT_GT(with_long_jump, 10u) << "these tables are meant to be large enough for jumps beyond eight bits";
}

TEST(FilterProperty, TheLinearYardstickSaysTheSame) {
  for (auto profile : {SyscallProfile::minimal, SyscallProfile::standard, SyscallProfile::permissive})
    for (auto arch : {Arch::x86_64, Arch::aarch64}) {
      const Table& table = table_of(profile, arch);
      Filter linear = reference::compile_linear(table);
      for (std::uint32_t nr = 0; nr < 1024; ++nr)
        ASSERT_EQ(simulate(linear, arch, nr, {}).word, reference::decide(table, nr, {}).word) << nr;
    }
}

TEST(AddSegment, MergesNeighboursThatGoToTheSamePlace) {
  std::vector<Segment> segments{{0, kKill}};
  add_segment(segments, 5, kAllow);
  add_segment(segments, 6, kKill);
  add_segment(segments, 6, kAllow);
  add_segment(segments, 9, kAllow);
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[1].start, 5u);
}

}  // namespace
}  // namespace osb::launch
