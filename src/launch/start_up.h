// How the programs that make sandboxes start: into the background, away from the terminal of whoever started them. For
// opensandbox-launch and opensandbox-confine.
#pragma once
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace osb::launch {

// A hang-up or Ctrl-C in the terminal of whoever started us is meant for them; a client that went away is told by EPIPE.
void ignore_signals_of_others();

// Runs the rest of main in a child of its own session; the caller waits until say_started(), or the child's end, and exits with what
// became of it. Before everything else: locks and namespaces belong to the process that stays.
Fd go_to_background();

// Lets the waiting caller go and leaves the standard streams to it; errors and the log go to `log_file`, or nowhere.
void say_started(Fd waiting, const std::string& log_file);

// The error and its hint, for a person to read. Returns the exit status of a program that could not start.
int tell_failure(const char* program, const Error& error);

}  // namespace osb::launch
