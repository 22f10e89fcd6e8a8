// Completion scripts, made from the table of commands.
#pragma once
#include <string>

namespace osb::cli {

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace osb::cli
