// Feeds arbitrary text to the reader of shell lines and to the policy: it ends, keeps its bounds, never takes what it could not read for
// nothing, and judges the same text the same way twice.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/command_policy.h"
#include "model/command_wrappers.h"

namespace {

using namespace osb;

void require(bool promise) {
  if (!promise) std::abort();
}

CommandPolicy make_policy() {
  auto policy = parse_command_policy(std::string_view(
      R"({"rules":[{"program":["rm","*sh"],"args_any":["-*r*"],"action":"deny"},{"program":"/usr/bin/[a-c]*","args_start":["x?"],"action":"ask"}]})"));
  require(static_cast<bool>(policy));
  return *std::move(policy);
}

void check(const ShellCommands& commands) {
  require(commands.all().size() <= kMaxShellCommands + 1);
  for (const auto& command : commands.all()) {
    require(!command.words.empty());
    // A program that is not known says why, or a person could not be told.
    if (!command.words.front().exact()) require(!command.why.empty());
    for (const auto& word : command.words) {
      if (word.exact()) require(word.tail.empty());
      if (word.sure == ShellWord::Sure::open) require(word.text.empty() && word.tail.empty());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const CommandPolicy kPolicy = make_policy();
  std::string text(reinterpret_cast<const char*>(data), size);
  check(commands_of_line(text));
  // The same command behind a word that is refused: whatever the text is, it cannot hide what stands before it.
  auto verdict = judge(kPolicy, Command::of_line("rm -r x\n" + text));
  require(verdict.action == CommandAction::deny);
  auto once = judge(kPolicy, Command::of_line(text));
  auto twice = judge(kPolicy, Command::of_line(text));
  require(once.action == twice.action && once.rule == twice.rule);
  auto argv = judge(kPolicy, Command::of_argv({"sh", "-c", text}));
  require(argv.action >= once.action);  // a shell around it hides nothing
  [[maybe_unused]] auto policy = parse_command_policy(std::string_view(text));
  return 0;
}
