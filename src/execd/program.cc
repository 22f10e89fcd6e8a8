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

std::vector<std::string> places_of(std::string_view name, const Env& env) {
  if (name.find('/') != std::string_view::npos) return {cat("_=", name)};
  auto path = env.find("PATH");
  std::vector<std::string> places;
  for (std::string_view dir : split(path == env.end() ? kDefaultPath : std::string_view(path->second), ':'))
    places.push_back(cat("_=", dir.empty() ? "." : dir, dir.ends_with('/') ? "" : "/", name));
  return places;
}

Attempt shell_attempt(std::string_view shell, const std::string& command, const Env& env) {
  return {places_of(shell, env), {std::string(shell), "-c", command}};
}

}  // namespace

std::vector<std::string> plain_words(std::string_view command) {
  if (!std::all_of(command.begin(), command.end(), is_plain)) return {};
  std::vector<std::string> words;
  for (std::string_view word : split(command, ' '))
    if (!word.empty()) words.emplace_back(word);
  if (words.empty() || words.front().find('=') != std::string::npos || !same_without_shell(words)) return {};
  return words;
}

bool environment_is_plain(const Env& env) {
  for (const char* name : {"BASH_ENV", "SHELLOPTS", "BASHOPTS", "EXECIGNORE", "POSIXLY_CORRECT"})
    if (env.contains(name)) return false;
  auto function = env.lower_bound("BASH_FUNC_");
  if (function != env.end() && function->first.starts_with("BASH_FUNC_")) return false;
  auto path = env.find("PATH");
  if (path == env.end()) return false;
  auto dirs = split(path->second, ':');
  return std::all_of(dirs.begin(), dirs.end(), [](std::string_view dir) { return dir.starts_with('/'); });
}

std::vector<Attempt> attempts_for_command(const std::string& command, const Env& env) {
  std::vector<Attempt> attempts;
  auto words = plain_words(command);
  if (!words.empty() && environment_is_plain(env)) {
    auto places = places_of(words.front(), env);
    attempts.push_back({std::move(places), std::move(words)});
  }
  attempts.push_back(shell_attempt("bash", command, env));
  attempts.push_back(shell_attempt("sh", command, env));
  return attempts;
}

std::vector<Attempt> attempts_for_argv(std::vector<std::string> argv, const Env& env) {
  auto places = places_of(argv.front(), env);
  std::vector<Attempt> attempts;
  attempts.push_back({std::move(places), std::move(argv)});
  return attempts;
}

}  // namespace osb::execd
