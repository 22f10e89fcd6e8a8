#include "model/command_policy.h"

#include <algorithm>

#include "base/text.h"
#include "model/command_wrappers.h"
#include "model/glob.h"
#include "model/json.h"

namespace osb {
namespace {

constexpr auto npos = std::string_view::npos;
constexpr std::size_t kShownBytes = 4096;
constexpr std::size_t kMostSteps = 8'000'000;  // tens of milliseconds; a policy and a command that need more are not clear

enum class Match : std::uint8_t { no, maybe, yes };

Match both(Match a, Match b) { return std::min(a, b); }

// "/usr//bin/../bin/rm" -> "/usr/bin/rm"; links are not followed.
std::string tidy(std::string_view path) {
  std::vector<std::string_view> parts;
  for (auto part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." && !parts.empty())
      parts.pop_back();
    else if (part != "..")
      parts.push_back(part);
  }
  std::string out;
  for (auto part : parts) out += cat("/", part);
  return out;
}

class Judge {
 public:
  explicit Judge(const CommandPolicy& policy) : policy_(policy) {}

  CommandVerdict judge(const ShellCommand& command) {
    CommandVerdict certain{policy_.otherwise, {}, {}, {}, false};
    CommandVerdict possible{CommandAction::allow, {}, {}, {}, true};
    for (std::size_t i = 0; i < policy_.rules.size(); ++i) {
      const auto& rule = policy_.rules[i];
      auto match = matches(rule, command);
      if (match == Match::no) continue;
      CommandVerdict told{rule.action, rule.name.empty() ? cat("rule ", i + 1) : rule.name, rule.reason, {}, match == Match::maybe};
      if (match == Match::yes) {
        certain = std::move(told);
        break;
      }
      if (told.action > possible.action) possible = std::move(told);
    }
    return settle(command, std::move(certain), std::move(possible));
  }

  bool exhausted() const { return steps_ > kMostSteps; }

 private:
  CommandVerdict settle(const ShellCommand& command, CommandVerdict certain, CommandVerdict possible) const {
    auto most = std::min(policy_.unclear, possible.action);
    bool unclear = most > certain.action;
    auto verdict = unclear ? std::move(possible) : std::move(certain);
    if (unclear) {
      verdict.action = most;
      verdict.reason = command.why.empty() ? std::string("one of its words is known only when it runs") : command.why;
    }
    verdict.command = command.shown();
    return verdict;
  }

  Match text(const std::string& pattern, const ShellWord& word) {
    if (glob_is_all(pattern)) return Match::yes;
    if (exhausted() || word.sure == ShellWord::Sure::open) return Match::maybe;
    if (word.exact()) return glob_matches(pattern, word.text, &steps_) ? Match::yes : Match::no;
    auto agree_start = [](std::string_view a, std::string_view b) { return a.starts_with(b) || b.starts_with(a); };
    auto agree_end = [](std::string_view a, std::string_view b) { return a.ends_with(b) || b.ends_with(a); };
    bool could = agree_start(glob_prefix(pattern), word.text) && agree_end(glob_suffix(pattern), word.tail);
    return could ? Match::maybe : Match::no;
  }

  // The last part of a path is certain when what is not certain stands before a slash of it.
  static ShellWord base_of(const ShellWord& word) {
    if (word.exact()) return ShellWord::plain(std::string(base_name(word.text)));
    if (word.sure == ShellWord::Sure::partly && word.tail.find('/') != npos) return ShellWord::plain(std::string(base_name(word.tail)));
    if (word.sure == ShellWord::Sure::partly && word.tail.empty() && word.text.find('/') == npos) return word;
    return {{}, word.tail, word.sure};
  }

  Match program(const std::string& pattern, const ShellWord& word) {
    if (pattern.find('/') == npos) return text(pattern, base_of(word));
    if (word.exact() && word.text.starts_with('/')) return text(pattern, ShellWord::plain(tidy(word.text)));
    // Found by PATH or from a directory that is not known here: only the last part can be compared.
    auto last = text(pattern.substr(pattern.rfind('/') + 1), base_of(word));
    return last == Match::no && pattern.find('*') == npos ? Match::no : std::min(Match::maybe, last == Match::no ? Match::maybe : last);
  }

  Match any_of(const std::vector<std::string>& patterns, const ShellWord& word) {
    auto best = Match::no;
    for (const auto& pattern : patterns) best = std::max(best, text(pattern, word));
    return best;
  }

  Match some_argument(const std::vector<std::string>& patterns, const ShellCommand& command) {
    auto best = Match::no;
    for (std::size_t i = 1; i < command.words.size() && best != Match::yes; ++i) best = std::max(best, any_of(patterns, command.words[i]));
    return best;
  }

  Match starts(const std::vector<std::string>& patterns, const ShellCommand& command) {
    auto all = Match::yes;
    for (std::size_t i = 0; i < patterns.size() && all != Match::no; ++i) {
      bool missing = i + 1 >= command.words.size();
      if (missing) return Match::no;
      const auto& word = command.words[i + 1];
      // From here on it is not known which argument is the how-manyeth.
      if (word.sure == ShellWord::Sure::open) return both(all, Match::maybe);
      all = both(all, text(patterns[i], word));
    }
    return all;
  }

  Match matches(const CommandRule& rule, const ShellCommand& command) {
    auto found = Match::no;
    for (const auto& pattern : rule.programs) found = std::max(found, program(pattern, command.words.front()));
    // A program that is not known may come with any arguments.
    bool unknown = command.words.front().sure == ShellWord::Sure::open;
    auto among = [&](Match match) { return unknown && match == Match::no ? Match::maybe : match; };
    if (found != Match::no && !rule.args_start.empty()) found = both(found, among(starts(rule.args_start, command)));
    if (found != Match::no && !rule.args_any.empty()) found = both(found, among(some_argument(rule.args_any, command)));
    for (const auto& pattern : rule.args_all)
      if (found != Match::no) found = both(found, among(some_argument({pattern}, command)));
    return found;
  }

  const CommandPolicy& policy_;
  std::size_t steps_ = 0;
};

bool is_shell_language(std::string_view language) {
  return language == "bash" || language == "sh" || language == "shell" || language == "command" || language == "zsh";
}

// A rule that names `terminal` decides; "*" does not name it. Without one a terminal is a shell whose input cannot be seen.
bool names(const CommandRule& rule, std::string_view program) {
  for (const auto& pattern : rule.programs)
    if (glob_matches(pattern, program) && !glob_matches(pattern, "\x01")) return true;
  return false;
}

void add_terminal(const CommandPolicy& policy, const std::vector<ShellWord>& arguments, ShellCommands& out) {
  ShellCommand terminal{{ShellWord::plain("terminal")}, {}};
  terminal.words.insert(terminal.words.end(), arguments.begin(), arguments.end());
  out.add(std::move(terminal));
  bool named = std::any_of(policy.rules.begin(), policy.rules.end(), [](const auto& rule) { return names(rule, "terminal"); });
  if (!named) out.add_unknown("what is typed into a terminal cannot be seen");
}

void add_code(const Command& command, ShellCommands& out) {
  ShellWord program = ShellWord::plain(cat("code:", to_lower(command.language)));
  if (command.language.empty()) program = {"code:", {}, ShellWord::Sure::partly};
  out.add({{std::move(program)}, command.language.empty() ? "the language of its context is not known" : ""});
  if (command.language.empty()) out.add_unknown("the language of its context is not known");
  if (!is_shell_language(to_lower(command.language))) return;
  for (const auto& inner : commands_of_line(command.text).all()) out.add(inner);
}

ShellCommands commands_in(const CommandPolicy& policy, const Command& command) {
  ShellCommands out;
  switch (command.kind) {
    case Command::Kind::line: out = commands_of_line(command.text); break;
    case Command::Kind::argv: out = commands_of_argv(command.argv); break;
    case Command::Kind::code: add_code(command, out); break;
    case Command::Kind::terminal:
      if (!command.text.empty()) out = commands_of_line(command.text);
      add_terminal(policy, {}, out);
      break;
    case Command::Kind::unreadable: out.add_unknown("the request cannot be read with certainty"); break;
  }
  if (command.kind == Command::Kind::argv && command.typed) {
    std::vector<ShellWord> words;
    for (const auto& word : command.argv) words.push_back(ShellWord::plain(word));
    add_terminal(policy, words, out);
  }
  for (const auto& name : command.variables)
    if (is_loaded_variable(name)) out.add_unknown(cat(name, " makes a program run that is not named here"));
  return out;
}

}  // namespace

std::string_view name_of(CommandAction action) {
  switch (action) {
    case CommandAction::allow: return "allow";
    case CommandAction::ask: return "ask";
    case CommandAction::deny: return "deny";
  }
  return "deny";
}

std::optional<CommandAction> parse_command_action(std::string_view name) {
  for (auto action : {CommandAction::allow, CommandAction::ask, CommandAction::deny})
    if (name == name_of(action)) return action;
  return std::nullopt;
}

std::string_view name_of(SelfApproval setting) {
  switch (setting) {
    case SelfApproval::privileged: return "privileged";
    case SelfApproval::always: return "always";
    case SelfApproval::never: return "never";
  }
  return "never";
}

std::optional<SelfApproval> parse_self_approval(std::string_view name) {
  for (auto setting : {SelfApproval::privileged, SelfApproval::always, SelfApproval::never})
    if (name == name_of(setting)) return setting;
  return std::nullopt;
}

bool CommandPolicy::judges() const {
  auto strict = [](const CommandRule& rule) { return rule.action != CommandAction::allow; };
  return otherwise != CommandAction::allow || std::any_of(rules.begin(), rules.end(), strict);
}

std::string Command::shown() const {
  std::string out;
  switch (kind) {
    case Kind::line:
    case Kind::unreadable: out = text; break;
    case Kind::argv: append_json_list(out, argv); break;
    case Kind::code: out = cat("code:", language.empty() ? "?" : language, "\n", text); break;
    case Kind::terminal: out = cat("terminal", text.empty() ? "" : " ", text); break;
  }
  if (out.size() <= kShownBytes) return out;
  return cat(std::string_view(out).substr(0, kShownBytes - 4), "…");
}

std::string CommandVerdict::sentence() const {
  auto who = rule.empty() ? std::string(unclear ? "the policy for unclear commands" : "the default of the policy")
                          : cat("rule ", json_string(rule));
  return cat(who, unclear && !rule.empty() ? " may apply to " : " applies to ", json_string(std::string_view(command).substr(0, 200)),
             reason.empty() ? "" : cat(": ", reason));
}

CommandVerdict judge(const CommandPolicy& policy, const Command& command) {
  CommandVerdict strictest{CommandAction::allow, {}, {}, {}, false};
  if (!policy.judges()) return strictest;
  Judge one(policy);
  bool first = true;
  for (const auto& simple : commands_in(policy, command).all()) {
    auto verdict = one.judge(simple);
    if (first || verdict.action > strictest.action) strictest = std::move(verdict);
    first = false;
    if (strictest.action == CommandAction::deny) break;
  }
  return strictest;
}

}  // namespace osb
