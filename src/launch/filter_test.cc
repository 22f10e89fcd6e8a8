// The compiled filters do what the tables say, are small, and contain nothing that could be left out.
#include "launch/filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>

#include "base/text.h"
#include "launch/filter_emit.h"
#include "launch/filter_reference.h"
#include "launch/filter_simulate.h"

namespace osb::launch {
namespace {

using reference::argument_classes;
using reference::decide;
using reference::OpenTable;
using reference::with_high_bits;

struct Choice {
  SyscallProfile profile;
  Arch arch;
};

std::string title(const Choice& choice) { return cat(name_of(choice.profile), choice.arch == Arch::x86_64 ? "_x86_64" : "_aarch64"); }

class FilterOf : public testing::TestWithParam<Choice> {
 protected:
  Table table_ = table_of(GetParam().profile, GetParam().arch);
  Filter filter_ = *compile_filter(GetParam().profile, GetParam().arch);
};

TEST_P(FilterOf, DecidesEveryNumberAsTheTableSays) {
  for (std::uint32_t nr = 0; nr < 1024; ++nr)
    for (std::uint64_t low : {0ull, 1ull, 0x7fffffffull, 0xffffffffull})
      for (std::uint64_t high : reference::kHighBits) {
        Arguments args;
        args.fill(low | high);
        ASSERT_EQ(simulate(filter_, table_.arch, nr, args).word, decide(table_, nr, args).word)
            << nr << " " << syscall_name(nr, table_.arch) << " args " << args[0];
      }
}

TEST_P(FilterOf, DecidesEveryClassOfArgumentsAsTheTableSaysWhateverTheHighBitsAre) {
  for (const ArgumentRule& rule : table_.rules)
    for (const Arguments& plain : argument_classes(rule)) {
      Action expected = decide(table_, rule.nr, plain);
      for (std::uint64_t high : reference::kHighBits) {
        Arguments args = with_high_bits(plain, high);
        ASSERT_EQ(simulate(filter_, table_.arch, rule.nr, args).word, expected.word)
            << syscall_name(rule.nr, table_.arch) << " " << args[0] << " " << args[1] << " " << args[2];
      }
    }
}

TEST_P(FilterOf, KillsForeignArchitectures) {
  constexpr std::uint32_t kArches[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, AUDIT_ARCH_RISCV64, 0};
  for (std::uint32_t arch : kArches)
    for (std::uint32_t nr : {0u, 1u, 20u, 39u, 172u, 1000u})
      if (arch != audit_arch(table_.arch)) EXPECT_EQ(simulate(filter_, arch, nr, {}).word, kKill.word) << arch << " " << nr;
}

TEST_P(FilterOf, TreatsNumbersBeyondTheTablesAsX32OrUnknown) {
  Action x32 = table_.arch == Arch::x86_64 ? kKill : kUnknownCall;
  for (std::uint32_t nr : {1024u, 65536u, kX32Bit - 1}) EXPECT_EQ(simulate(filter_, table_.arch, nr, {}).word, kUnknownCall.word) << nr;
  for (std::uint32_t nr : {kX32Bit, kX32Bit | 39, kX32Bit | 520, 0x80000000u, 0xfffffffeu})
    EXPECT_EQ(simulate(filter_, table_.arch, nr, {}).word, x32.word) << nr;
  EXPECT_EQ(simulate(filter_, table_.arch, kSkippedCall, {}).word, kUnknownCall.word);
}

// Ranges of numbers that share an action, counted without the compiler's help.
std::size_t ranges_of(const Table& table) {
  std::size_t ranges = table.arch == Arch::x86_64 ? 3 : 1;  // the last known one goes on up to x32; x32; the skipped call
  auto ruled = [&](std::uint32_t nr) { return std::ranges::find(table.rules, nr, &ArgumentRule::nr) != table.rules.end(); };
  for (std::uint32_t nr = 0; nr < 1024; ++nr)
    if (ruled(nr) || ruled(nr + 1) || decide(table, nr, {}) != decide(table, nr + 1, {})) ++ranges;
  return ranges;
}

TEST_P(FilterOf, FindsANumberInLogarithmicallyManySteps) {
  constexpr std::size_t kPrologueAndReturn = 4;
  std::size_t depth = std::bit_width(ranges_of(table_) - 1);
  for (std::uint32_t nr = 0; nr < 1024; ++nr)
    if (std::ranges::find(table_.rules, nr, &ArgumentRule::nr) == table_.rules.end())
      EXPECT_LE(path_length(filter_, table_.arch, nr, {}), kPrologueAndReturn + depth) << nr;
}

TEST_P(FilterOf, IsSmall) {
  EXPECT_LE(filter_.code.size(), 200u);
  EXPECT_LE(longest_path(filter_), 26u);
  EXPECT_LT(filter_.code.size() * 3, reference::compile_linear(table_).code.size());
}

TEST_P(FilterOf, HasNoRowThatCouldBeLeftOut) {
  OpenTable open(table_);
  for (std::size_t i = 0; i < open.rows.size(); ++i) {
    Row removed = open.rows[i];
    open.rows.erase(open.rows.begin() + static_cast<std::ptrdiff_t>(i));
    Filter without = *compile_table(open.table());
    EXPECT_NE(simulate(without, table_.arch, removed.nr, {}).word, simulate(filter_, table_.arch, removed.nr, {}).word)
        << syscall_name(removed.nr, table_.arch) << " has a row, but nothing changes without it";
    open.rows.insert(open.rows.begin() + static_cast<std::ptrdiff_t>(i), removed);
  }
}

class RedundantPart : public FilterOf {
 protected:
  bool changes_something(std::size_t rule) {
    Filter without = *compile_table(open_.table());
    const ArgumentRule& whole = table_.rules[rule];
    return std::ranges::any_of(argument_classes(whole), [&](const Arguments& args) {
      return simulate(without, table_.arch, whole.nr, args) != simulate(filter_, table_.arch, whole.nr, args);
    });
  }

  // Removes each part of `list` in turn and expects to see a difference.
  template <class T>
  void expect_each_counts(std::vector<T>& list, std::size_t rule, const char* what) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::vector<T> whole = list;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_TRUE(changes_something(rule)) << what << " " << i << " of " << syscall_name(table_.rules[rule].nr, table_.arch);
      list = std::move(whole);
    }
  }

  OpenTable open_{table_};
};

TEST_P(RedundantPart, IsNotInAnyArgumentRule) {
  for (std::size_t rule = 0; rule < open_.rules.size(); ++rule) {
    expect_each_counts(open_.rules[rule].cases, rule, "case");
    for (reference::OpenCase& one : open_.rules[rule].cases) {
      expect_each_counts(one.when, rule, "condition");
      for (reference::OpenCondition& condition : one.when) expect_each_counts(condition.values, rule, "value");
    }
  }
}

constexpr Choice kChoices[] = {
    {SyscallProfile::minimal, Arch::x86_64},  {SyscallProfile::standard, Arch::x86_64},  {SyscallProfile::permissive, Arch::x86_64},
    {SyscallProfile::minimal, Arch::aarch64}, {SyscallProfile::standard, Arch::aarch64}, {SyscallProfile::permissive, Arch::aarch64},
};
auto title_of(const testing::TestParamInfo<Choice>& info) { return title(info.param); }
INSTANTIATE_TEST_SUITE_P(Filter, FilterOf, testing::ValuesIn(kChoices), title_of);
INSTANTIATE_TEST_SUITE_P(Filter, RedundantPart, testing::ValuesIn(kChoices), title_of);

TEST(Filter, RefusesATableOutOfOrderOrWithDoubles) {
  OpenTable doubled(Arch::x86_64);
  doubled.rows = {{1, kAllow}, {1, kAllow}};
  EXPECT_FALSE(compile_table(doubled.table()));
  OpenTable descending(Arch::x86_64);
  descending.rows = {{2, kAllow}, {1, kAllow}};
  EXPECT_FALSE(compile_table(descending.table()));
  OpenTable both(Arch::x86_64);
  both.rows = {{1, kAllow}, {2, kAllow}};
  both.rules.push_back({2, {}, kAllow});
  EXPECT_FALSE(compile_table(both.table()));
  both.rows.pop_back();
  EXPECT_TRUE(compile_table(both.table()));
}

TEST(Filter, RefusesATableTooLongForTheKernel) {
  OpenTable table(Arch::aarch64);
  for (std::uint32_t nr = 0; nr < 20000; nr += 2) table.rows.push_back({nr, nr % 4 == 0 ? kAllow : refuse(EPERM)});
  EXPECT_FALSE(compile_table(table.table()));
}

TEST(Filter, OfAnEmptyTableRefusesEverythingAsUnknown) {
  Filter filter = *compile_table(OpenTable(Arch::aarch64).table());
  EXPECT_EQ(simulate(filter, Arch::aarch64, 0, {}).word, kUnknownCall.word);
  EXPECT_EQ(simulate(filter, Arch::x86_64, 0, {}).word, kKill.word);
}

TEST(SyscallName, KnowsBothArchitectures) {
  EXPECT_EQ(syscall_name(0, Arch::x86_64), "read");
  EXPECT_EQ(syscall_name(63, Arch::aarch64), "read");
  EXPECT_EQ(syscall_name(2000), "");
}

}  // namespace
}  // namespace osb::launch
