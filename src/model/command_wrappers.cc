#include "model/command_wrappers.h"

#include <algorithm>

#include "base/text.h"
#include "model/shell_reader.h"

namespace osb {
namespace {

constexpr auto npos = std::string_view::npos;
using Words = std::vector<ShellWord>;
using Sure = ShellWord::Sure;

// How the words before the inner command are passed over.
struct Wrapper {
  std::string_view name;
  std::string_view flags;            // single letters without a value
  std::string_view valued;           // single letters with one
  std::string_view long_valued;      // " name name ": long options whose value is the next word
  int operands = 0;                  // words of its own before the command
  bool assignments = false;          // NAME=value before the command
  std::string_view shell = "";       // option letters whose value is a shell line
  std::string_view unreadable = "";  // option letters after which nothing is certain
};

constexpr Wrapper kWrappers[] = {
    {"env", "i0v", "uC", " unset chdir ", 0, true, "", "S"},
    {"sudo", "AbEHnPSk", "ugpCrtTUhRD", " user group prompt close-from role type command-timeout other-user host chroot chdir ", 0, true,
     "", "sie"},
    {"doas", "n", "uC", "", 0, false, "", "s"},
    {"nohup", "", "", "", 0},
    {"setsid", "cfw", "", "", 0},
    {"nice", "", "n", " adjustment ", 0, false},
    {"ionice", "t", "cnpPu", " class classdata ", 0},
    {"chrt", "abdfiormpv", "TPD", " sched-runtime sched-period sched-deadline ", 1},
    {"taskset", "ac", "", "", 1},
    {"timeout", "fv", "sk", " signal kill-after ", 1},
    {"stdbuf", "", "ioe", " input output error ", 0},
    {"time", "pvqa", "fo", " format output ", 0},
    {"command", "p", "", "", 0},
    {"builtin", "", "", "", 0},
    {"exec", "cl", "a", "", 0},
    {"chroot", "", "", " groups userspec ", 1},
    {"flock", "snxuoeF", "wE", " timeout wait conflict-exit-code ", 1, false, "c"},
    {"unshare", "fmuinpUCTrc", "RwSG", " root wd setuid setgid propagation map-user map-group ", 0},
    {"nsenter", "amuinpUCTFZ", "tSGrw", " target setuid setgid ", 0},
    {"setarch", "BFILRSTXZv3", "", "", 0},
    {"linux32", "", "", "", 0},
    {"linux64", "", "", "", 0},
    {"catchsegv", "", "", "", 0},
    {"busybox", "", "", "", 0},
    {"toybox", "", "", "", 0},
    {"strace", "cCdfFhiknqrtTvVwxyzZY", "aAbeEIopPsSuUX", "", 0},
    {"ltrace", "cCfhirStTV", "aAeFlnopsuDx", "", 0},
    {"tini", "gsvw", "pe", "", 0},
    {"dumb-init", "cv", "r", "", 0},
    {"su", "lmpfP", "gGswu", " group supp-group shell user whitelist-environment ", -1, false, "c"},
    {"runuser", "lmpfP", "gGswu", " group supp-group shell user whitelist-environment ", -1, false, "c"},
    {"script", "aefqt", "oImOBTE", " echo ", -1, false, "c"},
    {"watch", "bcdegptxw", "n", " interval ", -2},
};

constexpr std::string_view kShells[] = {"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash", "yash", "posh", "fish", "csh", "tcsh"};
constexpr std::string_view kDeclares[] = {"export", "declare", "typeset", "readonly", "local", "env"};

template <class List>
bool holds(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

class Opener {
 public:
  Opener(int depth, ShellCommands& out) : depth_(depth), out_(out) {}

  void open(ShellCommand command) {
    if (command.words.empty()) return;
    auto words = command.words;
    bool known = command.words.front().exact();
    out_.add(std::move(command));
    if (!known || words.front().text.empty()) return;
    auto name = base_name(words.front().text);
    check_variables(name, words);
    if (holds(kShells, name)) return shell(words);
    if (name == "eval") return eval(words);
    if (name == "trap") return trap(words);
    if (name == "alias") return alias(words);
    if (name == "find" || name == "fd" || name == "fdfind") return find(name, words);
    if (name == "xargs") return xargs(words);
    if (name == "parallel" || name == "rust-parallel") return unclear("parallel makes its commands itself");
    const auto* row = std::find_if(std::begin(kWrappers), std::end(kWrappers), [&](const Wrapper& w) { return w.name == name; });
    if (row != std::end(kWrappers)) wrapper(*row, words);
  }

 private:
  void unclear(std::string why) { out_.add_unknown(std::move(why)); }

  void inner(Words words) {
    if (words.empty()) return;
    if (depth_ >= kMaxShellDepth) return unclear(cat("it is nested more than ", kMaxShellDepth, " deep"));
    ShellCommand command{std::move(words), {}};
    if (!command.words.front().exact()) command.why = "its program is known only when it runs";
    open_command(std::move(command), depth_ + 1, out_);
  }

  void line(const ShellWord& text) {
    ran_line_ = true;
    if (!text.exact()) return unclear("a shell runs a text that is known only then");
    if (depth_ >= kMaxShellDepth) return unclear(cat("it is nested more than ", kMaxShellDepth, " deep"));
    ShellCommands found;
    split_shell(text.text, depth_ + 1, found);
    for (const auto& command : found.all()) open_command(command, depth_ + 1, out_);
  }

  static Words from(const Words& words, std::size_t at) {
    return at < words.size() ? Words(words.begin() + static_cast<std::ptrdiff_t>(at), words.end()) : Words();
  }

  void check_variables(std::string_view name, const Words& words) {
    if (!holds(kDeclares, name)) return;
    for (const auto& word : words)
      if (auto length = assignment_length(word.text); length > 0 && is_loaded_variable(word.text.substr(0, word.text.find_first_of("+=["))))
        return unclear(cat(word.text.substr(0, length - 1), " makes a program run that is not named here"));
  }

  // bash [options] -c LINE, bash [options] FILE: a file's content is not looked at. Without either the script comes from the input.
  void shell(const Words& words) {
    bool takes_line = false;
    std::size_t i = 1;
    for (; i < words.size(); ++i) {
      const auto& word = words[i];
      if (!word.exact()) return unclear("a shell's words are known only when it runs");
      std::string_view text = word.text;
      if (text == "--" || text == "-") {
        ++i;
        break;
      }
      if (text.size() < 2 || (text[0] != '-' && text[0] != '+')) break;
      if (text == "--version" || text == "--help") return;
      if (text == "--rcfile" || text == "--init-file") return unclear("a shell runs a start-up file that is named here");
      if (text.starts_with("--")) continue;
      if (text.find('i') != npos && text[0] == '-') return unclear("an interactive shell runs what is typed");
      if (text.find('s') != npos && text[0] == '-') return unclear("a shell runs what it reads");
      if (text[0] == '-' && text.find('c') != npos) takes_line = true;
      if (text.find('o') != npos || text.find('O') != npos) ++i;
    }
    if (!takes_line && i < words.size()) return;
    if (i >= words.size()) return unclear("a shell runs what it reads");
    line(words[i]);
  }

  void eval(const Words& words) {
    ShellWord joined;
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (!words[i].exact()) return unclear("eval runs a text that is known only then");
      if (i == 1 && words[i].text == "--") continue;
      joined.text += cat(joined.text.empty() ? "" : " ", words[i].text);
    }
    if (!joined.text.empty()) line(joined);
  }

  void trap(const Words& words) {
    std::size_t i = words.size() > 1 && words[1].exact() && words[1].text == "--" ? 2 : 1;
    if (i >= words.size()) return;
    if (words[i].exact() && (words[i].text == "-" || words[i].text.starts_with("-l") || words[i].text.starts_with("-p"))) return;
    line(words[i]);
  }

  void alias(const Words& words) {
    for (std::size_t i = 1; i < words.size(); ++i)
      if (!words[i].exact() || words[i].text.find('=') != npos) return unclear("an alias changes what later words mean");
  }

  // {} is whatever was found.
  static ShellWord with_found(ShellWord word, std::string_view mark) {
    if (!word.exact() || mark.empty()) return word;
    auto at = word.text.find(mark);
    if (at == npos) return word;
    return {word.text.substr(0, at), word.text.substr(word.text.rfind(mark) + mark.size()), Sure::partly};
  }

  void find(std::string_view name, const Words& words) {
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (!words[i].exact()) continue;
      std::string_view text = words[i].text;
      bool runs = name == "find" ? text == "-exec" || text == "-execdir" || text == "-ok" || text == "-okdir"
                                 : text == "-x" || text == "-X" || text == "--exec" || text == "--exec-batch";
      if (!runs && name != "find" && (text.starts_with("--exec=") || text.starts_with("--exec-batch=")))
        return unclear("what fd runs is not read");
      if (!runs) continue;
      Words inside;
      for (++i; i < words.size() && !(words[i].exact() && (words[i].text == ";" || words[i].text == "+")); ++i)
        inside.push_back(with_found(words[i], "{}"));
      inner(std::move(inside));
    }
    // A word that only the running shell knows may be an -exec as well.
    for (std::size_t i = 1; i < words.size(); ++i)
      if (words[i].sure == Sure::open) return unclear("find's words are known only when it runs");
  }

  void xargs(const Words& words) {
    std::string mark;
    std::size_t i = 1;
    for (; i < words.size(); ++i) {
      if (!words[i].exact()) return unclear("xargs' words are known only when it runs");
      std::string_view text = words[i].text;
      if (text == "--") {
        ++i;
        break;
      }
      if (text.size() < 2 || text[0] != '-') break;
      if (text.starts_with("--")) {
        if (text == "--replace" || text == "--max-lines" || text == "--eof") mark = "{}";
        if (text.starts_with("--replace=")) mark = text.substr(10);
        constexpr std::string_view kValued = " --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var ";
        if (kValued.find(cat(" ", text, " ")) != npos) ++i;
        continue;
      }
      if (!xargs_letters(text, words, i, mark)) return;
    }
    auto inside = from(words, i);
    if (inside.empty()) return;
    for (auto& word : inside) word = with_found(std::move(word), mark);
    inside.push_back(ShellWord::unknown());
    inner(std::move(inside));
  }

  bool xargs_letters(std::string_view text, const Words& words, std::size_t& i, std::string& mark) {
    for (std::size_t at = 1; at < text.size(); ++at) {
      char c = text[at];
      bool last = at + 1 == text.size();
      if (std::string_view("0rtpxo").find(c) != npos) continue;
      if (c == 'i' || c == 'e' || c == 'l') {  // an optional value, joined
        if (c == 'i') mark = last ? "{}" : std::string(text.substr(at + 1));
        return true;
      }
      if (std::string_view("IndaPLsE").find(c) == npos) {
        unclear("an option of xargs is not known");
        return false;
      }
      if (last) ++i;
      if (c != 'I') return true;
      if (last && (i >= words.size() || !words[i].exact())) {
        unclear("xargs' words are known only when it runs");
        return false;
      }
      mark = last ? words[i].text : std::string(text.substr(at + 1));
      return true;
    }
    return true;
  }

  // Passes over the wrapper's own words; false when they cannot be told from the command's.
  bool options(const Wrapper& row, const Words& words, std::size_t& i) {
    for (; i < words.size(); ++i) {
      if (!words[i].exact()) {
        // A variable among the options may be an option, a value or the command.
        unclear(cat("the words of ", row.name, " are known only when it runs"));
        return false;
      }
      std::string_view text = words[i].text;
      if (text == "--") {
        ++i;
        return true;
      }
      bool negative_nice = row.name == "nice" && text.size() > 1 && text[0] == '-' && text.find_first_not_of("0123456789", 1) == npos;
      if (negative_nice || (row.assignments && assignment_like(text))) continue;
      if (text.size() < 2 || text[0] != '-') return true;
      if (text.starts_with("--")) {
        if (!long_option(row, words, text, i)) return false;
      } else if (!letters(row, words, text, i)) {
        return false;
      }
    }
    return true;
  }

  static bool assignment_like(std::string_view text) {
    auto equals = text.find('=');
    return equals != npos && equals > 0 && text[0] != '-' && text.find('/') > equals;
  }

  bool long_option(const Wrapper& row, const Words& words, std::string_view text, std::size_t& i) {
    auto name = text.substr(2, text.find('=') == npos ? npos : text.find('=') - 2);
    bool joined = text.find('=') != npos;
    if (name == "command" && !row.shell.empty()) {
      if (!joined) ++i;
      if (joined)
        line(ShellWord::plain(std::string(text.substr(text.find('=') + 1))));
      else if (i < words.size())
        line(words[i]);
      return true;
    }
    if (name == "split-string" || name == "shell" || name == "login") {
      unclear(cat("what ", row.name, " runs with --", name, " is not read"));
      return false;
    }
    if (!joined && row.long_valued.find(cat(" ", name, " ")) != npos) ++i;
    return true;
  }

  bool letters(const Wrapper& row, const Words& words, std::string_view text, std::size_t& i) {
    for (std::size_t at = 1; at < text.size(); ++at) {
      char c = text[at];
      if (row.flags.find(c) != npos) continue;
      if (row.name == "command" && (c == 'v' || c == 'V')) return false;  // says where a program is; runs nothing
      bool last = at + 1 == text.size();
      if (row.shell.find(c) != npos) {
        if (last) ++i;
        if (last && i >= words.size()) return true;
        line(last ? words[i] : ShellWord::plain(std::string(text.substr(at + 1))));
        return true;
      }
      if (row.valued.find(c) != npos) {
        if (last) ++i;
        return true;
      }
      unclear(cat("what ", row.name, " does with -", std::string(1, c), " is not read"));
      return false;
    }
    return true;
  }

  void wrapper(const Wrapper& row, const Words& words) {
    std::size_t i = 1;
    if (!options(row, words, i)) return;
    if (row.operands == -1) return shell_of(row, words, i);
    if (row.operands == -2) return joined_line(from(words, i));
    for (int n = 0; n < row.operands; ++n, ++i)
      if (i < words.size() && words[i].sure == Sure::open) return unclear(cat("the words of ", row.name, " are known only when it runs"));
    // flock FILE -c LINE: options may follow the operand.
    if (!row.shell.empty() && i < words.size() && words[i].exact() && words[i].text.starts_with('-')) {
      [[maybe_unused]] bool read = options(row, words, i);
      return;
    }
    inner(from(words, i));
  }

  // su NAME -c LINE: options stand anywhere. Without a line a shell reads its input.
  void shell_of(const Wrapper& row, const Words& words, std::size_t i) {
    while (++i < words.size())
      if (!options(row, words, i)) return;
    if (!ran_line_) unclear("a shell runs what it reads");
  }

  void joined_line(const Words& words) {
    ShellWord text;
    for (const auto& word : words) {
      if (!word.exact()) return unclear("a shell runs a text that is known only then");
      text.text += cat(text.text.empty() ? "" : " ", word.text);
    }
    if (!text.text.empty()) line(text);
  }

  int depth_;
  ShellCommands& out_;
  bool ran_line_ = false;
};

}  // namespace

std::string_view base_name(std::string_view program) {
  auto slash = program.rfind('/');
  return slash == npos ? program : program.substr(slash + 1);
}

void open_command(ShellCommand command, int depth, ShellCommands& out) {
  if (!out.full()) return Opener(depth, out).open(std::move(command));
  out.add(std::move(command));
}

ShellCommands commands_of_line(std::string_view line) {
  ShellCommands found, out;
  split_shell(line, 0, found);
  for (const auto& command : found.all()) open_command(command, 0, out);
  return out;
}

ShellCommands commands_of_argv(const std::vector<std::string>& argv) {
  ShellCommands out;
  ShellCommand command;
  for (const auto& word : argv) command.words.push_back(ShellWord::plain(word));
  if (command.words.empty()) return out;
  open_command(std::move(command), 0, out);
  return out;
}

}  // namespace osb
