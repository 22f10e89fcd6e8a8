// What reads a program's output when no client does.
#pragma once
#include <memory>

#include "execd/commands.h"
#include "execd/sandbox.h"

namespace osb::execd {

// Into the command's ring, until every holder of the pipe has closed it.
Task<void> collect(std::shared_ptr<Command> command);
Task<void> collect_into(std::shared_ptr<Process> process, Ring& ring);

// Reads and drops the rest, so that a program whose reader is gone, or one left running by a command that has ended,
// is not killed for writing. At most 256 at a time; beyond that the pipes are closed.
void drain_in_background(Sandbox& sandbox, std::shared_ptr<OutputSource> source);

// Lets everything else that is ready run first.
Task<void> give_way();

}  // namespace osb::execd
