#include "launch/filter.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "base/text.h"
#include "launch/filter_emit.h"

namespace osb::launch {
namespace {

constexpr std::uint32_t kFullMask = 0xffffffff;
constexpr std::uint32_t kNumberOffset = offsetof(seccomp_data, nr);
constexpr std::uint32_t kArchOffset = offsetof(seccomp_data, arch);

// Both architectures are little-endian: the low half of an argument comes first.
constexpr std::uint32_t low_half_of(std::uint8_t arg) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + arg * sizeof(std::uint64_t));
}

Target emit_condition(Emitter& out, const Condition& condition, Target hit, Target miss) {
  std::vector<Segment> segments{{0, miss}};
  for (std::uint32_t value : condition.values) {
    add_segment(segments, value, hit);
    if (value != kFullMask) add_segment(segments, value + 1, miss);
  }
  Target decision = out.tree(segments);
  return out.load(low_half_of(condition.arg), condition.mask, decision);
}

// Written backwards like everything here: the last case first, in each the last condition first.
Target emit_rule(Emitter& out, const ArgumentRule& rule) {
  Target next = rule.otherwise;
  for (std::size_t c = rule.cases.size(); c-- > 0;) {
    const Case& one = rule.cases[c];
    Target hit = one.then;
    for (std::size_t w = one.when.size(); w-- > 0;) hit = emit_condition(out, one.when[w], hit, next);
    next = hit;
  }
  return next;
}

void add_call(std::vector<Segment>& segments, std::uint32_t nr, Target target) {
  add_segment(segments, nr, target);
  add_segment(segments, nr + 1, kUnknownCall);
}

std::vector<Segment> segments_of(Emitter& out, const Table& table) {
  std::vector<Segment> segments{{0, kUnknownCall}};
  auto row = table.rows.begin();
  for (const ArgumentRule& rule : table.rules) {
    for (; row != table.rows.end() && row->nr < rule.nr; ++row) add_call(segments, row->nr, row->action);
    add_call(segments, rule.nr, emit_rule(out, rule));
  }
  for (; row != table.rows.end(); ++row) add_call(segments, row->nr, row->action);
  if (table.arch == Arch::x86_64) {
    add_segment(segments, kX32Bit, kKill);
    add_segment(segments, kSkippedCall, kUnknownCall);
  }
  return segments;
}

template <class Entry>
bool ascending(std::span<const Entry> entries) {
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].nr >= kX32Bit || (i > 0 && entries[i].nr <= entries[i - 1].nr)) return false;
  return true;
}

bool disjoint(const Table& table) {
  auto row = table.rows.begin();
  for (const ArgumentRule& rule : table.rules) {
    while (row != table.rows.end() && row->nr < rule.nr) ++row;
    if (row != table.rows.end() && row->nr == rule.nr) return false;
  }
  return true;
}

}  // namespace

Result<Filter> compile_table(const Table& table) {
  if (!ascending(table.rows) || !ascending(table.rules) || !disjoint(table))
    return Error(Errc::internal, "seccomp table: numbers are not ascending or appear twice");
  Emitter out;
  std::vector<Segment> segments = segments_of(out, table);
  Target by_number = out.tree(segments);
  Target native = out.load(kNumberOffset, kFullMask, by_number);
  // First of all, because a number means nothing before the architecture is known.
  Target checked = out.branch(BPF_JMP | BPF_JEQ | BPF_K, audit_arch(table.arch), native, kKill);
  Target entry = out.load(kArchOffset, kFullMask, checked);
  Filter filter{std::move(out).finish(entry)};
  if (filter.code.size() > BPF_MAXINSNS) return Error(Errc::internal, cat("seccomp filter: ", filter.code.size(), " instructions"));
  return filter;
}

Result<Filter> compile_filter(SyscallProfile profile, Arch arch) {
  auto filter = compile_table(table_of(profile, arch));
  if (!filter) return std::move(filter).error().in(cat("compile profile ", name_of(profile)));
  return filter;
}

int load_filter(const Filter& filter, unsigned flags) noexcept {
  sock_fprog program = filter.program();
  return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

}  // namespace osb::launch
