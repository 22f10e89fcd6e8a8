// Compiles a system-call profile into the classic-BPF program that the kernel runs before every call.
//
// The program is a balanced tree over ranges of numbers with equal action: the kernel walks it once for every number
// when it is loaded (to remember the plain allows) and then for the calls that need a decision, so both loading and
// running cost the length of a path, not the length of the program.
//
// A foreign architecture and x32 kill the process; a number nobody knows gets ENOSYS; arguments are compared on
// their low 32 bits. Compile before fork: loading needs no heap and is async-signal-safe.
#pragma once
#include <linux/filter.h>

#include <vector>

#include "base/result.h"
#include "launch/filter_table.h"

namespace osb::launch {

struct Filter {
  std::vector<sock_filter> code;

  // Borrows `code`; the kernel only reads it.
  sock_fprog program() const noexcept {
    return {.len = static_cast<unsigned short>(code.size()), .filter = const_cast<sock_filter*>(code.data())};
  }
};

Result<Filter> compile_filter(SyscallProfile profile, Arch arch = kNativeArch);

// Fails when the table breaks its own promises (order, doubles) or the program would be longer than the kernel takes.
Result<Filter> compile_table(const Table& table);

// seccomp(SECCOMP_SET_MODE_FILTER): what the kernel answers, -1 with errno on failure. The caller has set
// no_new_privs (or holds CAP_SYS_ADMIN). From the next call on, the filter holds for this thread and its children.
int load_filter(const Filter& filter, unsigned flags = 0) noexcept;

}  // namespace osb::launch
