#include "cli/completion.h"

#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

// What completes an operand: a command to run, or a word the shells know by themselves.
std::string_view operand_source(Operand operand) {
  switch (operand) {
    case Operand::sandbox: return "opensandbox ls -q -a 2>/dev/null";
    case Operand::image: return "opensandbox image ls -q 2>/dev/null";
    case Operand::approval: return "opensandbox approvals ls -q 2>/dev/null";
    case Operand::recipe: return "opensandbox image build --list 2>/dev/null";
    case Operand::shell: return "echo bash zsh fish";
    case Operand::command:
    case Operand::none:
    case Operand::file:
    case Operand::program: return {};
  }
  return {};
}

std::string first_words() {
  std::string out, seen = " ";
  for (const CommandSpec* command : commands()) {
    auto word = command->name.substr(0, command->name.find(' '));
    if (command->hidden || seen.contains(cat(" ", word, " "))) continue;
    seen += cat(word, " ");
    out += cat(out.empty() ? "" : " ", word);
  }
  return out;
}

std::string second_words(std::string_view group) {
  std::string out;
  for (const CommandSpec* command : commands())
    if (command->name.starts_with(cat(group, " "))) out += cat(out.empty() ? "" : " ", command->name.substr(group.size() + 1));
  return out;
}

std::vector<OptionSpec> shown_options(const CommandSpec& command) {
  auto out = options_of(command);
  std::erase_if(out, [](const OptionSpec& option) { return option.hidden; });
  return out;
}

std::string flags_of(const CommandSpec& command) {
  std::string out;
  for (const auto& option : shown_options(command)) {
    if (!option.short_name().empty()) out += cat("-", option.short_name(), " ");
    out += cat("--", option.long_name(), " ");
  }
  if (!out.empty()) out.pop_back();
  return out;
}

std::string quoted(std::string_view text) {  // for single quotes of a POSIX shell
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string choices_of(const OptionSpec& option) {
  std::string out(option.choices);
  for (char& c : out)
    if (c == '|') c = ' ';
  return out;
}

std::string bash_case(const CommandSpec& command) {
  std::string out = cat("    ", quoted(command.name), ")\n      case \"$prev\" in\n");
  for (const auto& option : shown_options(command)) {
    if (option.choices.empty()) continue;
    auto flag = option.short_name().empty() ? std::string() : cat("-", option.short_name(), "|");
    out += cat("        ", flag, "--", option.long_name(), ") words=", quoted(choices_of(option)), " ;;\n");
  }
  out += "        *)\n          case \"$cur\" in\n";
  out += cat("            -*) words=", quoted(flags_of(command)), " ;;\n");
  auto source = operand_source(command.operand);
  if (!source.empty())
    out += cat("            *) words=\"$(", source, ")\" ;;\n");
  else if (command.operand == Operand::file)
    out += "            *) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n";
  else if (command.operand == Operand::program)
    out += "            *) COMPREPLY=($(compgen -c -- \"$cur\")); return ;;\n";
  else if (command.operand == Operand::command)
    out += cat("            *) words=", quoted(first_words()), " ;;\n");
  return out + "          esac ;;\n      esac ;;\n";
}

constexpr std::array kGroups{std::string_view("image"),  std::string_view("snapshot"),  std::string_view("volume"),
                             std::string_view("pool"),   std::string_view("approvals"), std::string_view("files"),
                             std::string_view("daemon"), std::string_view("config")};

Result<int> show_completion(const Args& args) {
  const auto& shell = args.operands[0];
  if (shell == "bash")
    CHECK_OK(print(bash_completion()));
  else if (shell == "zsh")
    CHECK_OK(print(zsh_completion()));
  else if (shell == "fish")
    CHECK_OK(print(fish_completion()));
  else
    return usage_error(cat("no completion for '", shell, "'"), "there is one for bash, zsh and fish");
  return kExitOk;
}

}  // namespace

std::string bash_completion() {
  std::string out =
      "# bash completion of opensandbox; load it with: source <(opensandbox completion bash)\n"
      "_opensandbox() {\n"
      "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" cmd=\"${COMP_WORDS[1]}\" words=''\n"
      "  COMPREPLY=()\n";
  out += cat("  if [ \"$COMP_CWORD\" -le 1 ]; then COMPREPLY=($(compgen -W ", quoted(first_words()), " -- \"$cur\")); return; fi\n");
  out += "  case \"$cmd\" in\n";
  for (auto group : kGroups)
    out += cat("    ", group, ") if [ \"$COMP_CWORD\" -eq 2 ]; then COMPREPLY=($(compgen -W ", quoted(second_words(group)),
               " -- \"$cur\")); return; fi; cmd=\"$cmd ${COMP_WORDS[2]}\" ;;\n");
  out += "  esac\n  case \"$cmd\" in\n";
  for (const CommandSpec* command : commands())
    if (!command->hidden) out += bash_case(*command);
  out += "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _opensandbox opensandbox osb\n";
  return out;
}

// zsh runs bash completions by itself; one script less to keep true.
std::string zsh_completion() {
  return cat("#compdef opensandbox osb\n# zsh completion of opensandbox; load it with: source <(opensandbox completion zsh)\n",
             "autoload -Uz bashcompinit && bashcompinit\n", bash_completion());
}

std::string fish_completion() {
  std::string out = "# fish completion of opensandbox; load it with: opensandbox completion fish | source\n";
  for (auto name : {"opensandbox", "osb"}) {
    out += cat("complete -c ", name, " -f -n __fish_use_subcommand -a ", quoted(first_words()), "\n");
    for (auto group : kGroups) {
      auto words = second_words(group);
      out += cat("complete -c ", name, " -f -n '__fish_seen_subcommand_from ", group, "; and not __fish_seen_subcommand_from ", words,
                 "' -a ", quoted(words), "\n");
    }
    for (const CommandSpec* command : commands()) {
      auto last = command->name.substr(command->name.rfind(' ') + 1);
      auto seen = cat(" -n '__fish_seen_subcommand_from ", last, "'");
      for (const auto& option : shown_options(*command)) {
        out += cat("complete -c ", name, seen, " -l ", option.long_name());
        if (!option.short_name().empty()) out += cat(" -s ", option.short_name());
        if (!option.value.empty()) out += option.choices.empty() ? std::string(" -r") : cat(" -x -a ", quoted(choices_of(option)));
        out += cat(" -d ", quoted(option.help), "\n");
      }
      if (auto source = operand_source(command->operand); !source.empty())
        out += cat("complete -c ", name, seen, " -f -a '(", source, ")'\n");
    }
  }
  return out;
}

constinit const CommandSpec kCompletion{
    .name = "completion",
    .also = {},
    .summary = "print a completion script for your shell",
    .usage = "bash|zsh|fish",
    .details = {},
    .examples =
        "source <(opensandbox completion bash)\n"
        "opensandbox completion fish > ~/.config/fish/completions/opensandbox.fish",
    .options = {},
    .operand = Operand::shell,
    .min_operands = 1,
    .max_operands = 1,
    .main = show_completion,
};

}  // namespace osb::cli
