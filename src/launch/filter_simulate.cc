#include "launch/filter_simulate.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace osb::launch {
namespace {

struct Outcome {
  Action action = kKill;
  std::size_t steps = 0;
};

std::uint32_t word_at(const seccomp_data& data, std::uint32_t offset) {
  std::uint32_t word = 0;
  if (offset % sizeof word != 0 || offset > sizeof data - sizeof word) return 0;
  std::memcpy(&word, reinterpret_cast<const char*>(&data) + offset, sizeof word);
  return word;
}

bool is_return(const sock_filter& at) { return at.code == (BPF_RET | BPF_K); }
bool is_jump(const sock_filter& at) { return at.code == (BPF_JMP | BPF_JA); }
bool is_branch(const sock_filter& at) { return BPF_CLASS(at.code) == BPF_JMP && !is_jump(at); }

bool holds(const sock_filter& at, std::uint32_t accumulator) {
  switch (at.code) {
    case BPF_JMP | BPF_JEQ | BPF_K: return accumulator == at.k;
    case BPF_JMP | BPF_JGE | BPF_K: return accumulator >= at.k;
    case BPF_JMP | BPF_JGT | BPF_K: return accumulator > at.k;
    case BPF_JMP | BPF_JSET | BPF_K: return (accumulator & at.k) != 0;
    default: return false;
  }
}

Outcome run(const Filter& filter, const seccomp_data& data) {
  std::uint32_t accumulator = 0;
  Outcome outcome;
  for (std::size_t at = 0; at < filter.code.size(); ++at) {
    const sock_filter& now = filter.code[at];
    ++outcome.steps;
    if (is_return(now)) {
      outcome.action = {now.k};
      return outcome;
    }
    if (is_jump(now))
      at += now.k;
    else if (is_branch(now))
      at += holds(now, accumulator) ? now.jt : now.jf;
    else if (now.code == (BPF_LD | BPF_W | BPF_ABS))
      accumulator = word_at(data, now.k);
    else if (now.code == (BPF_ALU | BPF_AND | BPF_K))
      accumulator &= now.k;
    else
      return outcome;
  }
  return outcome;
}

Outcome run(const Filter& filter, std::uint32_t arch, std::uint32_t nr, const Arguments& args) {
  seccomp_data data{};
  data.nr = static_cast<int>(nr);
  data.arch = arch;
  std::ranges::copy(args, data.args);
  return run(filter, data);
}

}  // namespace

Action simulate(const Filter& filter, std::uint32_t arch, std::uint32_t nr, const Arguments& args) {
  return run(filter, arch, nr, args).action;
}

std::size_t path_length(const Filter& filter, Arch arch, std::uint32_t nr, const Arguments& args) {
  return run(filter, audit_arch(arch), nr, args).steps;
}

// Jumps only go forward, so one pass from the end knows the longest way out of every instruction.
std::size_t longest_path(const Filter& filter) {
  const auto& code = filter.code;
  std::vector<std::size_t> from(code.size() + 1, 0);
  auto beyond = [&](std::size_t at) { return from[std::min(at, code.size())]; };
  for (std::size_t at = code.size(); at-- > 0;) {
    const sock_filter& now = code[at];
    std::size_t rest = 0;
    if (is_jump(now))
      rest = beyond(at + 1 + now.k);
    else if (is_branch(now))
      rest = std::max(beyond(at + 1 + now.jt), beyond(at + 1 + now.jf));
    else if (!is_return(now))
      rest = beyond(at + 1);
    from[at] = 1 + rest;
  }
  return from.front();
}

}  // namespace osb::launch
