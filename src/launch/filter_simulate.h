// Runs a compiled filter as the kernel would, without loading it: for tests, and for saying what a filter does.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "launch/filter.h"

namespace osb::launch {

using Arguments = std::array<std::uint64_t, 6>;

// `arch` is an AUDIT_ARCH_* word. A program that the kernel would not take (runs off its end, unknown instruction)
// answers kKill.
Action simulate(const Filter& filter, std::uint32_t arch, std::uint32_t nr, const Arguments& args);
inline Action simulate(const Filter& filter, Arch arch, std::uint32_t nr, const Arguments& args) {
  return simulate(filter, audit_arch(arch), nr, args);
}

// How many instructions one call runs through, and the most that any call can.
std::size_t path_length(const Filter& filter, Arch arch, std::uint32_t nr, const Arguments& args);
std::size_t longest_path(const Filter& filter);

}  // namespace osb::launch
