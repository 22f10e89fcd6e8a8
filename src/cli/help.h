// The texts of --help, made from the table of commands.
#pragma once
#include <string>

#include "cli/spec.h"

namespace osb::cli {

std::string help_overview();
std::string help_of(const CommandSpec& command);

}  // namespace osb::cli
