// One row a command: the table of rows makes the parser, --help, completion and did-you-mean.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace osb::cli {

struct OptionSpec {
  std::string_view flags;       // "-e,--env"; the long name is the key in Args
  std::string_view value = {};  // "K=V"; empty = a switch
  std::string_view help = {};
  bool repeat = false;            // may be given several times; otherwise the last one counts
  std::string_view choices = {};  // "json|table"; empty = any text
  bool negatable = false;         // a switch that also takes =true and =false
  bool hidden = false;            // ours alone: in no help and no completion

  std::string_view long_name() const;   // "env"
  std::string_view short_name() const;  // "e", or empty
};

// What a shell completes where operands stand.
enum class Operand { none, approval, sandbox, image, recipe, file, shell, program, command };

class Args;

struct CommandSpec {
  std::string_view name;                   // "run", "daemon start"
  std::span<const std::string_view> also;  // other names
  std::string_view summary;                // one line of the list of commands
  std::string_view usage;                  // what follows the name: "[options] [--] CMD [ARG...]"
  std::string_view details;                // paragraphs of --help
  std::string_view examples;               // lines of --help
  std::span<const OptionSpec> options;
  Operand operand = Operand::none;
  std::size_t min_operands = 0;
  std::size_t max_operands = 0;
  bool config_flags = false;     // every key of the daemon's configuration is an option too
  bool carries_command = false;  // words after the operands are a command line: taken as they are
  bool command_is_optional = false;
  bool hidden = false;                         // not in the list of commands
  Result<int> (*main)(const Args&) = nullptr;  // the exit status
};

// What was typed, checked against the row: every option is known, every choice is one of the choices.
class Args {
 public:
  const CommandSpec* command = nullptr;
  std::vector<std::string> operands;
  std::vector<std::string> words;  // the command line of run and exec

  bool has(std::string_view long_name) const { return values_.contains(long_name); }
  std::string get(std::string_view long_name, std::string_view otherwise = {}) const;  // the last value
  const std::vector<std::string>& all(std::string_view long_name) const;
  void add(std::string_view long_name, std::string value) { values_[std::string(long_name)].push_back(std::move(value)); }
  const std::map<std::string, std::vector<std::string>, std::less<>>& values() const { return values_; }

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

// A wrong command line: exit status 2.
Error usage_error(std::string what, std::string_view hint = {});
bool is_usage_error(const Error& error);

}  // namespace osb::cli
