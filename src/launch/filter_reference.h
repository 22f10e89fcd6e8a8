// For tests: the same tables understood in the plainest way, to hold the compiled filters against.
#pragma once
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "launch/filter_simulate.h"

namespace osb::launch::reference {

inline bool holds(const Condition& condition, const Arguments& args) {
  auto low = static_cast<std::uint32_t>(args[condition.arg]);
  return std::ranges::find(condition.values, low & condition.mask) != condition.values.end();
}

// What the table says about a call of its own architecture, read from top to bottom.
inline Action decide(const Table& table, std::uint32_t nr, const Arguments& args) {
  if (table.arch == Arch::x86_64 && nr >= kX32Bit && nr != kSkippedCall) return kKill;
  for (const Row& row : table.rows)
    if (row.nr == nr) return row.action;
  for (const ArgumentRule& rule : table.rules) {
    if (rule.nr != nr) continue;
    for (const Case& one : rule.cases)
      if (std::ranges::all_of(one.when, [&](const Condition& condition) { return holds(condition, args); })) return one.then;
    return rule.otherwise;
  }
  return kUnknownCall;
}

// The obvious program, one comparison after the other: the yardstick for size and load time.
inline Filter compile_linear(const Table& table) {
  Filter filter;
  auto put = [&](unsigned code, std::uint32_t k, std::size_t jt = 0, std::size_t jf = 0) {
    filter.code.push_back({static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(jt), static_cast<std::uint8_t>(jf), k});
  };
  auto put_return = [&](Action action) { put(BPF_RET | BPF_K, action.word); };
  constexpr unsigned kLoad = BPF_LD | BPF_W | BPF_ABS;
  constexpr unsigned kEqual = BPF_JMP | BPF_JEQ | BPF_K;
  put(kLoad, offsetof(seccomp_data, arch));
  put(kEqual, audit_arch(table.arch), 1, 0);
  put_return(kKill);
  put(kLoad, offsetof(seccomp_data, nr));
  if (table.arch == Arch::x86_64) {
    put(kEqual, kSkippedCall, 2, 0);
    put(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 0, 1);
    put_return(kKill);
  }
  for (const ArgumentRule& rule : table.rules) {
    Table alone{table.arch, {}, {&rule, 1}};
    Filter block = *compile_table(alone);
    put(kEqual, rule.nr, 0, block.code.size());
    filter.code.insert(filter.code.end(), block.code.begin(), block.code.end());
  }
  for (const Row& row : table.rows) {
    put(kEqual, row.nr, 0, 1);
    put_return(row.action);
  }
  put_return(kUnknownCall);
  return filter;
}

// A table that can be changed; table() borrows from it and is good until the next change.
struct OpenCondition {
  std::uint8_t arg = 0;
  std::uint32_t mask = 0xffffffff;
  std::vector<std::uint32_t> values;
};
struct OpenCase {
  std::vector<OpenCondition> when;
  Action then;
};
struct OpenRule {
  std::uint32_t nr = 0;
  std::vector<OpenCase> cases;
  Action otherwise;
};

class OpenTable {
 public:
  explicit OpenTable(Arch arch) : arch_(arch) {}
  explicit OpenTable(const Table& table) : rows(table.rows.begin(), table.rows.end()), arch_(table.arch) {
    for (const ArgumentRule& rule : table.rules) {
      OpenRule& open = rules.emplace_back(rule.nr, std::vector<OpenCase>(), rule.otherwise);
      for (const Case& one : rule.cases) {
        OpenCase& into = open.cases.emplace_back(std::vector<OpenCondition>(), one.then);
        for (const Condition& condition : one.when)
          into.when.emplace_back(condition.arg, condition.mask, std::vector(condition.values.begin(), condition.values.end()));
      }
    }
  }

  Table table() {
    conditions_.clear();
    cases_.clear();
    views_.clear();
    for (const OpenRule& rule : rules) {
      std::vector<Case>& cases = cases_.emplace_back();
      for (const OpenCase& one : rule.cases) {
        std::vector<Condition>& when = conditions_.emplace_back();
        for (const OpenCondition& condition : one.when) when.push_back({condition.arg, condition.mask, condition.values});
        cases.push_back({when, one.then});
      }
      views_.push_back({rule.nr, cases, rule.otherwise});
    }
    return {arch_, rows, views_};
  }

  std::vector<Row> rows;
  std::vector<OpenRule> rules;

 private:
  Arch arch_;
  // Spans point at the inner vectors' heap, which stays when the outer vector grows and moves them.
  std::vector<std::vector<Condition>> conditions_;
  std::vector<std::vector<Case>> cases_;
  std::vector<ArgumentRule> views_;
};

// Arguments worth trying on a rule: every value it names, its neighbours, bits outside its masks, the extremes.
inline std::vector<Arguments> argument_classes(const ArgumentRule& rule) {
  std::array<std::vector<std::uint32_t>, 6> interesting;
  for (const Case& one : rule.cases)
    for (const Condition& condition : one.when) {
      auto& values = interesting[condition.arg];
      for (std::uint32_t value : condition.values)
        for (std::uint32_t v : {value, value + 1, value - 1, value | ~condition.mask, value ^ (condition.mask & -condition.mask)})
          values.push_back(v);
      values.insert(values.end(), {0, 0x7fffffff, 0x80000000, 0xffffffff});
    }
  std::vector<Arguments> all{Arguments{}};
  for (std::size_t arg = 0; arg < interesting.size(); ++arg) {
    auto& values = interesting[arg];
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    if (values.empty()) continue;
    std::vector<Arguments> wider;
    for (const Arguments& args : all)
      for (std::uint32_t value : values) {
        wider.push_back(args);
        wider.back()[arg] = value;
      }
    all = std::move(wider);
  }
  return all;
}

inline Arguments with_high_bits(Arguments args, std::uint64_t bits) {
  for (auto& arg : args) arg |= bits;
  return args;
}
inline constexpr std::uint64_t kHighBits[] = {0, 1ull << 32, 1ull << 63, 0xffffffffull << 32};

}  // namespace osb::launch::reference
