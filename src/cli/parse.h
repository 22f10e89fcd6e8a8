// From the words of the command line to Args. CLI11 lives behind this file alone.
#pragma once
#include <span>
#include <string>

#include "base/result.h"
#include "cli/spec.h"

namespace osb::cli {

struct Parsed {
  const CommandSpec* command = nullptr;
  Args args;
  bool wants_help = false;
};

// `words` without the program's name. For run and exec options end at the first operand, so that the command's own
// options stay its own. Errors are usage errors and name the nearest option.
Result<Parsed> parse(std::span<const std::string> words);

// The part of parse() that follows the command's name.
Result<Args> parse_args(const CommandSpec& command, std::span<const std::string> words);

}  // namespace osb::cli
