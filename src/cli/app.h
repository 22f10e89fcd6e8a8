// From argv to an exit status.
#pragma once
#include <span>
#include <string>

#include "base/result.h"
#include "cli/spec.h"

namespace osb::cli {

// `serve` runs in this process where it is given, in a program of its own where it is null.
int run_program(std::span<const std::string> words, Result<int> (*serve)(const Args&) = nullptr);

// What a failure makes the exit status: 2 for a wrong command line, 4 for a wrong key, 125 for run and exec, else 1.
int exit_status_for(const Error& error, const CommandSpec* command);

}  // namespace osb::cli
