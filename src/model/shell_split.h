// A shell line taken apart into its simple commands, without running anything.
//
// Reads what POSIX shells and bash read: lists, pipes, groups, subshells, functions, loops, case, here-documents, quotes, and the
// commands inside $(...), `...`, <(...). Where the two shells read a text differently, both readings are among the commands.
// Nothing is guessed: what only the running shell can know (a variable, a glob) is a word that is not exact, and a line that
// cannot be read ends in a command whose program is not known. Linear in the text, bounded in depth and number.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace osb {

inline constexpr std::size_t kMaxShellBytes = 256 * 1024;
inline constexpr int kMaxShellDepth = 32;
inline constexpr std::size_t kMaxShellCommands = 4096;

struct ShellWord {
  // exact: `text` is the word. partly: one word that begins with `text` and ends with `tail`. open: any number of words.
  enum class Sure : std::uint8_t { exact, partly, open };
  std::string text;
  std::string tail;
  Sure sure = Sure::exact;

  bool exact() const { return sure == Sure::exact; }
  static ShellWord plain(std::string text) { return {std::move(text), {}, Sure::exact}; }
  static ShellWord unknown() { return {{}, {}, Sure::open}; }
  std::string shown() const;  // for people: "…" where it is not known
};

struct ShellCommand {
  std::vector<ShellWord> words;  // program and arguments, without redirections and leading VAR=x; never empty
  std::string why;               // where the program is not known: what could not be read
  std::string shown() const;
};

// Where commands are collected. Past kMaxShellCommands one more tells that there are others.
class ShellCommands {
 public:
  void add(ShellCommand command);
  void add_unknown(std::string why);
  const std::vector<ShellCommand>& all() const { return commands_; }
  bool full() const { return commands_.size() >= kMaxShellCommands; }

 private:
  std::vector<ShellCommand> commands_;
};

// Appends the commands of the line. Wrappers (sudo, env, sh -c) are not opened: see command_wrappers.h.
void split_shell(std::string_view line, int depth, ShellCommands& out);

// A variable that makes a shell or the loader run something: BASH_ENV, LD_PRELOAD, an exported function.
bool is_loaded_variable(std::string_view name);

}  // namespace osb
