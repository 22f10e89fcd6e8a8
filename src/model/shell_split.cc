#include "model/shell_split.h"

#include <algorithm>

#include "base/text.h"
#include "model/shell_reader.h"

namespace osb {
namespace {

constexpr std::size_t kShownBytes = 400;

constexpr std::string_view kLoaded[] = {"BASH_ENV", "ENV", "PS4", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS", "LD_PRELOAD", "LD_AUDIT"};

}  // namespace

bool is_loaded_variable(std::string_view name) {
  return name.starts_with("BASH_FUNC_") || std::find(std::begin(kLoaded), std::end(kLoaded), name) != std::end(kLoaded);
}

std::string ShellWord::shown() const {
  if (exact()) return text;
  return cat(text, "…", tail);
}

std::string ShellCommand::shown() const {
  std::string out;
  for (const auto& word : words) {
    if (out.size() > kShownBytes) return out += " …";
    auto text = word.shown();
    out += cat(out.empty() ? "" : " ", std::string_view(text).substr(0, kShownBytes));
  }
  return out;
}

void ShellCommands::add(ShellCommand command) {
  if (commands_.size() > kMaxShellCommands) return;
  if (full()) command = {{ShellWord::unknown()}, cat("there are more than ", kMaxShellCommands, " commands in it")};
  commands_.push_back(std::move(command));
}

void ShellCommands::add_unknown(std::string why) { add({{ShellWord::unknown()}, std::move(why)}); }

void split_shell(std::string_view line, int depth, ShellCommands& out) {
  if (line.size() > kMaxShellBytes) return out.add_unknown(cat("it is longer than ", kMaxShellBytes, " bytes"));
  if (line.find('\0') != std::string_view::npos) return out.add_unknown("it contains a zero byte");
  ShellReader(line, depth, out).read();
}

}  // namespace osb
