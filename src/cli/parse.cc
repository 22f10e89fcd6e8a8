#include "cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>

#include "base/text.h"
#include "cli/commands.h"

namespace osb::cli {
namespace {

const OptionSpec* find_option(const std::vector<OptionSpec>& options, std::string_view word) {
  if (word.starts_with("--")) {
    auto name = word.substr(2, word.find('=') == std::string_view::npos ? word.npos : word.find('=') - 2);
    auto found = std::ranges::find_if(options, [&](const OptionSpec& o) { return o.long_name() == name; });
    return found == options.end() ? nullptr : &*found;
  }
  auto found = std::ranges::find_if(options, [&](const OptionSpec& o) { return o.short_name() == word.substr(1, 1); });
  return found == options.end() ? nullptr : &*found;
}

// True when the option's value is the next word.
bool takes_next(const std::vector<OptionSpec>& options, std::string_view word) {
  const OptionSpec* option = find_option(options, word);
  if (option == nullptr || option->value.empty()) return false;
  return word.starts_with("--") ? !word.contains('=') : word.size() == 2;
}

// Where the command line of run and exec begins: behind the options, then the operands, then one "--".
struct Cut {
  std::vector<std::string> head;  // options only
  std::vector<std::string> operands;
  std::vector<std::string> words;
};
Cut cut(const CommandSpec& command, const std::vector<OptionSpec>& options, std::span<const std::string> words) {
  Cut out;
  std::size_t i = 0;
  for (; i < words.size() && words[i].size() > 1 && words[i][0] == '-' && words[i] != "--"; ++i) {
    out.head.push_back(words[i]);
    if (takes_next(options, words[i]) && i + 1 < words.size()) out.head.push_back(words[++i]);
  }
  if (i < words.size() && words[i] == "--") ++i;
  for (; i < words.size() && out.operands.size() < command.min_operands; ++i) out.operands.push_back(words[i]);
  if (i < words.size() && command.min_operands > 0 && words[i] == "--") ++i;
  out.words.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  return out;
}

Error unknown_option(const CommandSpec& command, const std::vector<OptionSpec>& options, std::string_view word) {
  auto name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const auto& option : options) known.push_back(cat("--", option.long_name()));
  std::vector<std::string_view> views(known.begin(), known.end());
  auto near = name.starts_with("--") ? nearest(name, views) : std::nullopt;
  auto hint = near ? cat("did you mean ", *near, "?") : cat("`opensandbox ", command.name, " --help` lists the options");
  return usage_error(cat("unknown option ", name, " for '", command.name, "'"), hint);
}

Error wrong_operands(const CommandSpec& command) {
  return usage_error(cat("'", command.name, "' is used as: opensandbox ", command.name, command.usage.empty() ? "" : " ", command.usage),
                     cat("`opensandbox ", command.name, " --help` has examples"));
}

// Values land here while CLI11 walks the words; a deque keeps their addresses.
struct Slot {
  const OptionSpec* option;
  std::vector<std::string> values;
  CLI::Option* handle = nullptr;
};

void declare(CLI::App& app, std::deque<Slot>& slots, const std::vector<OptionSpec>& options) {
  for (const auto& option : options) {
    Slot& slot = slots.emplace_back(Slot{&option, {}});
    if (option.value.empty()) {
      slot.handle = app.add_flag(std::string(option.flags));
    } else {
      slot.handle = app.add_option(std::string(option.flags), slot.values)->expected(1)->allow_extra_args(false);
      slot.handle->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->expected(1, CLI::detail::expected_max_vector_size);
      slot.handle->allow_extra_args(false);
    }
  }
}

Result<> check_choice(const OptionSpec& option, std::string_view value) {
  if (option.choices.empty()) return Ok{};
  auto choices = split(option.choices, '|');
  if (std::ranges::find(choices, value) != choices.end()) return Ok{};
  auto near = nearest(value, choices);
  return usage_error(cat("--", option.long_name(), " '", value, "' is none of ", option.choices),
                     near ? cat("did you mean ", *near, "?") : "");
}

Result<> collect(Args& args, const std::deque<Slot>& slots) {
  for (const Slot& slot : slots) {
    if (slot.handle->count() == 0) continue;
    if (slot.option->value.empty()) {
      auto said = slot.handle->results().back();  // "true" unless it was written as --switch=false
      if (said == "true" || slot.option->negatable) args.add(slot.option->long_name(), said);
    }
    for (const auto& value : slot.values) {
      CHECK_OK(check_choice(*slot.option, value));
      args.add(slot.option->long_name(), value);
    }
  }
  return Ok{};
}

Result<> parse_options(Args& args, const std::vector<OptionSpec>& options, std::span<const std::string> words) {
  CLI::App app;
  app.set_help_flag();
  std::deque<Slot> slots;
  declare(app, slots, options);
  app.add_option("operands", args.operands)->expected(0, CLI::detail::expected_max_vector_size);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ExtrasError&) {
    for (const auto& word : app.remaining())
      if (word.starts_with('-')) return unknown_option(*args.command, options, word);
    return wrong_operands(*args.command);
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what(), cat("`opensandbox ", args.command->name, " --help` lists the options"));
  }
  return collect(args, slots);
}

}  // namespace

Result<Args> parse_args(const CommandSpec& command, std::span<const std::string> words) {
  Args args;
  args.command = &command;
  auto options = options_of(command);
  if (command.carries_command) {
    Cut parts = cut(command, options, words);
    CHECK_OK(parse_options(args, options, parts.head));
    args.operands = std::move(parts.operands);
    args.words = std::move(parts.words);
  } else {
    CHECK_OK(parse_options(args, options, words));
  }
  if (args.has("help")) return args;
  bool too_few =
      args.operands.size() < command.min_operands || (command.carries_command && !command.command_is_optional && args.words.empty());
  if (too_few || args.operands.size() > std::max(command.min_operands, command.max_operands)) return wrong_operands(command);
  return args;
}

Result<Parsed> parse(std::span<const std::string> words) {
  // Options before the command's name ("--host X ls") count as if they stood behind it.
  std::vector<OptionSpec> early{kHostOption, kKeyOption, kKeyFileOption, kOutputOption};
  std::vector<std::string> moved;
  std::size_t i = 0;
  for (; i < words.size() && words[i].size() > 1 && words[i][0] == '-'; ++i) {
    if (words[i] == "-h" || words[i] == "--help") return Parsed{nullptr, {}, true};
    if (words[i] == "--version" || words[i] == "-V") return Parsed{&kVersion, {}, false};
    moved.push_back(words[i]);
    if (takes_next(early, words[i]) && i + 1 < words.size()) moved.push_back(words[++i]);
  }
  TRY(auto found, find_command(words.subspan(i)));
  auto rest = words.subspan(i + found.words);
  moved.insert(moved.end(), rest.begin(), rest.end());
  TRY(auto args, parse_args(*found.command, moved));
  bool help = args.has("help");
  return Parsed{found.command, std::move(args), help};
}

}  // namespace osb::cli
