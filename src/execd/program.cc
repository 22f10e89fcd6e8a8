#include "execd/program.h"

#include <algorithm>

#include "base/text.h"

namespace osb::execd {
namespace {

bool is_plain(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return std::string_view("_@%+:,./=- ").find(c) != std::string_view::npos;
}

// Sorted; everything that bash 5, dash or busybox sh looks up before it searches PATH. Names with characters that are
// not plain ("[[", "{", "!") need no entry.
constexpr std::string_view kShellWords[] = {
    ".",       ":",        "alias",    "bg",      "bind",     "break",   "builtin", "caller",    "case",     "cd",     "chdir",
    "command", "compgen",  "complete", "compopt", "continue", "coproc",  "declare", "dirs",      "disown",   "do",     "done",
    "elif",    "else",     "enable",   "esac",    "eval",     "exec",    "exit",    "export",    "fc",       "fg",     "fi",
    "for",     "function", "getopts",  "hash",    "help",     "history", "if",      "in",        "jobs",     "kill",   "let",
    "local",   "logout",   "mapfile",  "popd",    "pushd",    "pwd",     "read",    "readarray", "readonly", "return", "select",
    "set",     "shift",    "shopt",    "source",  "suspend",  "test",    "then",    "time",      "times",    "trap",   "type",
    "typeset", "ulimit",   "umask",    "unalias", "unset",    "until",   "wait",    "while"};
static_assert(std::is_sorted(std::begin(kShellWords), std::end(kShellWords)));

bool same_without_shell(const std::vector<std::string>& words) {
  const std::string& name = words.front();
  auto is_option = [](const std::string& word) { return word.starts_with('-'); };
  if (name == "true" || name == "false") return words.size() == 1;
  if (name == "echo") return std::none_of(words.begin() + 1, words.end(), is_option);
  if (name == "printf") return words.size() == 2 && !is_option(words[1]) && words[1].find('%') == std::string::npos;
  return !name.starts_with('%') && !std::binary_search(std::begin(kShellWords), std::end(kShellWords), std::string_view(name));
}

Attempt shell_attempt(const char* shell, const std::string& command) {
  Attempt attempt;
  attempt.argv.reserve(3);
  attempt.argv.emplace_back(shell);
  attempt.argv.emplace_back("-c");
  attempt.argv.push_back(command);
  return attempt;
}

bool all_absolute(std::string_view path) {
  for (;;) {
    if (!path.starts_with('/')) return false;
    auto end = path.find(':');
    if (end == std::string_view::npos) return true;
    path.remove_prefix(end + 1);
  }
}

}  // namespace

std::vector<std::string> plain_words(std::string_view command) {
  if (!std::all_of(command.begin(), command.end(), is_plain)) return {};
  std::vector<std::string> words;
  words.reserve(8);
  for (std::size_t at = 0; (at = command.find_first_not_of(' ', at)) != std::string_view::npos;) {
    auto end = std::min(command.find(' ', at), command.size());
    words.emplace_back(command.substr(at, end - at));
    at = end;
  }
  if (words.empty() || words.front().find('=') != std::string::npos || !same_without_shell(words)) return {};
  return words;
}

bool environment_is_plain(const Variables& env) {
  for (const char* name : {"BASH_ENV", "SHELLOPTS", "BASHOPTS", "EXECIGNORE", "POSIXLY_CORRECT"})
    if (env.find(name)) return false;
  if (env.has_prefix("BASH_FUNC_")) return false;
  const std::string* path = env.find("PATH");
  return path && all_absolute(*path);
}

std::vector<Attempt> attempts_for_command(const std::string& command, const Variables& env) {
  std::vector<Attempt> attempts;
  attempts.reserve(3);
  auto words = plain_words(command);
  if (!words.empty() && environment_is_plain(env)) attempts.push_back({std::move(words)});
  attempts.push_back(shell_attempt("bash", command));
  attempts.push_back(shell_attempt("sh", command));
  return attempts;
}

std::vector<Attempt> attempts_for_argv(std::vector<std::string> argv) {
  std::vector<Attempt> attempts;
  attempts.push_back({std::move(argv)});
  return attempts;
}

}  // namespace osb::execd
