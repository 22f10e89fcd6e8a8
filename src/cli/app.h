// From argv to an exit status.
#pragma once
#include <span>
#include <string>

#include "base/result.h"
#include "cli/spec.h"

namespace osb::cli {

int run_program(std::span<const std::string> words);

// What a failure makes the exit status: 2 for a wrong command line, 4 for a wrong key, 125 for run and exec, else 1.
int exit_status_for(const Error& error, const CommandSpec* command);

}  // namespace osb::cli
