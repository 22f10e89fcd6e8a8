// A pair of terminal ends from the sandbox's own devpts.
#pragma once
#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace osb::execd {

struct WindowSize {
  std::uint16_t cols = 80;
  std::uint16_t rows = 24;
};

struct TerminalEnds {
  Fd master;  // execd's; non-blocking
  Fd slave;   // the program's
};

// The slave belongs to `owner` (no owner: to execd itself), so that the program and what it starts as the same user can open
// it again by name. Errc::unsupported: there is no devpts here; Errc::exhausted: every terminal is taken.
Result<TerminalEnds> open_terminal(WindowSize size, const std::uint32_t* owner);

// On the master. A size of zero changes nothing.
void resize_terminal(int master, WindowSize size);
// The process group a key typed at the terminal would reach; 0 when there is none.
int foreground_group(int master);

}  // namespace osb::execd
