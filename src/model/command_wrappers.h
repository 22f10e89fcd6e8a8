// Programs that run other programs: sudo, env, timeout, xargs, find -exec, sh -c, eval and the like, opened one after the other.
#pragma once
#include "model/shell_split.h"

namespace osb {

// The command itself and, where it is a wrapper, every command it runs. A wrapper whose words cannot be read with certainty, a
// shell that reads its script from its input, and what only a running shell can know add a command whose program is not known.
void open_command(ShellCommand command, int depth, ShellCommands& out);

// All commands of a shell line, wrappers opened.
ShellCommands commands_of_line(std::string_view line);
ShellCommands commands_of_argv(const std::vector<std::string>& argv);

std::string_view base_name(std::string_view program);

}  // namespace osb
