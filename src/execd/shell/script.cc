#include "execd/shell/script.h"

#include "base/text.h"

namespace osb::execd::shell {
namespace {

// `exit` ends the run and keeps the shell: it notes the status and interrupts the command it stands in, which an
// interactive shell survives. A subshell exits, and so does a shell with a trap of its own on EXIT or INT, because the trap
// must run. `command` and the backslash go past functions and aliases of the same name.
constexpr std::string_view kBashOpening =
    "PS1='$ '; set +H +o history; unset HISTFILE TMOUT PROMPT_COMMAND MAILCHECK; shopt -u checkwinsize\n"
    "exit() { _osb_status=${1-$?}; [ \"$BASH_SUBSHELL\" != 0 ] || [ -n \"$(trap -p EXIT INT)\" ] || builtin kill -INT $$; "
    "builtin exit \"$_osb_status\"; }\n";

// As exit(3) does it: the low eight bits. What is no number is the mistake the shell itself answers with 2.
int status_from(std::string_view text) {
  auto number = parse_int<std::int64_t>(text);
  return number ? static_cast<int>(*number & 0xFF) : 2;
}

}  // namespace

std::vector<std::string> bash_words() { return {"bash", "--norc", "--noprofile", "--noediting", "-i", "-s"}; }
std::vector<std::string> sh_words() { return {"sh", "-s"}; }

std::string quote(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out += '\'';
}

std::string opening(std::string_view exports) {
  return cat("[ -z \"$BASH_VERSION\" ] || eval ", quote(kBashOpening), "\n", exports, exports.empty() ? "" : "\n");
}

// Letters stand before the nonce, for a digit behind "\0" would belong to it.
std::string report_request(std::string_view nonce) {
  return cat("\\command printf 'S", nonce, "\\0%s\\0%s\\0' \"${_osb_status-$?}\" \"$PWD\" >&0; \\command export -p >&0; ",
             "\\command printf '\\0E", nonce, "\\0' >&0; \\unset _osb_status\n");
}

// The redirections belong to the braces, so they end with the command whatever it does to its descriptors. stderr is
// opened inside, after `eval` has been traced: with `set -x` a client sees its own commands only.
std::string errand_text(const Errand& errand) {
  std::string text = "{ ";
  if (!errand.cwd.empty()) text += cat("\\command cd -- ", quote(errand.cwd), " 2>", errand.err, " && ");
  text += cat("\\eval ", quote(cat("\\exec 2>", errand.err, "\n", errand.command)), "; } </dev/null >", errand.out, " 2>/dev/null\n");
  return text += report_request(errand.nonce);
}

std::optional<Report> find_report(std::string_view written, std::string_view nonce) {
  std::string mark = cat("S", nonce);
  auto fields = split(written, '\0');
  for (std::size_t i = 0; i + 3 < fields.size(); ++i)
    if (fields[i] == mark && !fields[i + 2].starts_with(mark)) return Report{status_from(fields[i + 1]), std::string(fields[i + 2])};
  return std::nullopt;
}

std::optional<std::string> take_exports(std::string& written, std::string_view nonce) {
  std::string mark = cat(std::string_view("\0E", 2), nonce, '\0');
  auto end = written.find(mark);
  if (end == std::string::npos) return std::nullopt;
  auto begin = end == 0 ? std::string::npos : written.rfind('\0', end - 1);
  std::string exports = begin == std::string::npos ? written.substr(0, end) : written.substr(begin + 1, end - begin - 1);
  written.erase(0, end + mark.size());
  return exports;
}

}  // namespace osb::execd::shell
