// Which commands may run: rules by program and argument patterns, judged before anything is executed.
//
// A guard for honest mistakes and for agents that were talked into something. It is not the isolation: a program that is
// allowed can run any other, and the sandbox is what holds then. What cannot be read with certainty is never taken for allowed by chance.
//
// Rules are tried in order, the first that matches decides, `otherwise` where none does. A line of several commands is judged
// command by command (shell_split.h, command_wrappers.h) and the strictest verdict is the line's.
#pragma once
#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace osb {

enum class CommandAction : std::uint8_t { allow, ask, deny };  // from mild to strict
std::string_view name_of(CommandAction action);
std::optional<CommandAction> parse_command_action(std::string_view name);

// May the key that runs a command also answer for it? privileged: only one that sees every sandbox (and the local door).
enum class SelfApproval : std::uint8_t { privileged, always, never };
std::string_view name_of(SelfApproval setting);
std::optional<SelfApproval> parse_self_approval(std::string_view name);

inline constexpr std::size_t kMaxCommandRules = 256;
inline constexpr std::size_t kMaxRulePatterns = 64;  // of one kind in one rule
inline constexpr std::size_t kMaxRuleText = 256;     // name and reason
inline constexpr std::size_t kMaxPolicyBytes = 64 * 1024;
inline constexpr std::uint32_t kMaxAskSeconds = 3600;
// The extension of a create that carries the sandbox's own policy, as JSON text.
inline constexpr std::string_view kPolicyExtension = "opensandbox.commandPolicy";

// All that is given must hold. A pattern with a '/' is compared with the whole path, one without with the last part of it.
struct CommandRule {
  std::string name;  // "" = "rule N"
  std::vector<std::string> programs;
  std::vector<std::string> args_start;  // the first arguments match these, one by one
  std::vector<std::string> args_any;    // some argument matches one of these
  std::vector<std::string> args_all;    // each of these matches some argument
  CommandAction action = CommandAction::deny;
  std::string reason;
  bool operator==(const CommandRule&) const = default;
};

struct CommandPolicy {
  CommandAction otherwise = CommandAction::allow;
  // For what is not certain: the strictest that a rule could say, and at most this.
  CommandAction unclear = CommandAction::deny;
  std::optional<std::uint32_t> ask_timeout_seconds;
  std::vector<CommandRule> rules;

  bool judges() const;  // false: everything is allowed, whatever it is
  bool operator==(const CommandPolicy&) const = default;
};

// {"default","unclear","ask_timeout_seconds","rules":[{"name","program","args_start","args_any","args_all","action","reason"}]}; a
// list of one may be written without brackets. Errc::invalid_argument; field() is the path of the member at fault.
Result<CommandPolicy> parse_command_policy(const boost::json::object& object);
Result<CommandPolicy> parse_command_policy(std::string_view json);
std::string rules_json(const std::vector<CommandRule>& rules);  // as the parser reads them, one line

// What is about to run.
struct Command {
  enum class Kind : std::uint8_t { line, argv, code, terminal, unreadable };
  Kind kind = Kind::line;
  std::string text;                    // line: for a shell. code: its text. terminal: the line it starts with, "" = a shell
  std::vector<std::string> argv;       // argv: program and arguments
  std::string language;                // code: "python", "bash"; "" = not known
  bool typed = false;                  // argv at a terminal, or with an open input: what is typed cannot be seen
  std::vector<std::string> variables;  // names of environment variables that the caller sets

  static Command of_line(std::string text) { return {Kind::line, std::move(text), {}, {}, false, {}}; }
  static Command of_argv(std::vector<std::string> argv) { return {Kind::argv, {}, std::move(argv), {}, false, {}}; }
  static Command of_code(std::string language, std::string text) {
    return {Kind::code, std::move(text), {}, std::move(language), false, {}};
  }
  static Command of_terminal(std::string line = {}) { return {Kind::terminal, std::move(line), {}, {}, false, {}}; }
  // A body that our parser refuses and another might read.
  static Command not_readable(std::string text) { return {Kind::unreadable, std::move(text), {}, {}, false, {}}; }
  std::string shown() const;  // for people and records, at most 4 KiB
};

struct CommandVerdict {
  CommandAction action = CommandAction::allow;
  std::string rule;     // the name of the rule; "" = none, `otherwise` or `unclear` decided
  std::string reason;   // the rule's, or why it is not clear
  std::string command;  // the simple command that decided
  bool unclear = false;
  // "rule no-rm: rm -rf / (files are kept)": one sentence for the person who is refused or asked.
  std::string sentence() const;
};

CommandVerdict judge(const CommandPolicy& policy, const Command& command);

}  // namespace osb
