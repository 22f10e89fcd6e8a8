// What the processes of a sandbox use, read from the host's /proc: without a group there is nobody else to ask.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace osb::confine {

struct ProcessUse {
  std::int32_t pid = 0;  // on the host
  std::uint64_t tasks = 0;
  std::uint64_t resident_bytes = 0;  // shared pages count in every process that has them
  std::uint64_t cpu_nanos = 0;       // with the children it has waited for
};

// Of a process's pid namespace, as the kernel writes it; "" when it is gone.
std::string pid_namespace_of(std::int32_t pid);
// One look at every process of the host; those of other namespaces than the given ones are left out.
std::vector<std::vector<ProcessUse>> processes_in(const std::vector<std::string>& namespaces);
// Has it started anything? true where the kernel does not say.
bool has_children(std::int32_t pid);
// What would be free without it: private memory, and its share of what it has in common with others. Files do not count.
std::uint64_t own_bytes_of(std::int32_t pid);

}  // namespace osb::confine
