#include "model/shell_reader.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace osb {
namespace {

constexpr auto npos = std::string_view::npos;

bool is_name_start(char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || (c >= '0' && c <= '9'); }

constexpr std::string_view kSkipped[] = {"if", "then", "else", "elif", "fi", "do", "done", "while", "until", "{", "}", "!", "esac"};

// "2" of 2>file and "{fd}" of {fd}>file belong to the redirection.
bool is_descriptor(std::string_view raw) {
  if (raw.empty()) return false;
  if (raw.find_first_not_of("0123456789") == npos) return true;
  if (raw.size() < 3 || raw.front() != '{' || raw.back() != '}' || !is_name_start(raw[1])) return false;
  return std::all_of(raw.begin() + 1, raw.end() - 1, is_name);
}

}  // namespace

bool is_shell_meta(char c) { return std::string_view(" \t\n;&|<>()").find(c) != npos; }

std::size_t assignment_length(std::string_view raw) {
  std::size_t i = 0;
  while (i < raw.size() && is_name(raw[i])) ++i;
  if (i == 0 || !is_name_start(raw[0])) return 0;
  if (i < raw.size() && raw[i] == '[') {
    auto close = raw.find(']', i);
    if (close == npos) return 0;
    i = close + 1;
  }
  if (i < raw.size() && raw[i] == '+') ++i;
  return i < raw.size() && raw[i] == '=' ? i + 1 : 0;
}

// ---- characters -----------------------------------------------------------------------------------------------------

void ShellReader::fail(std::string why) {
  if (failed_) return;
  failed_ = true;
  out_.add_unknown(std::move(why));
}

bool ShellReader::deeper() {
  if (depth_ < kMaxShellDepth) return true;
  fail(cat("it is nested more than ", kMaxShellDepth, " deep"));
  return false;
}

void ShellReader::skip_blanks() {
  for (;;) {
    if (peek() == ' ' || peek() == '\t')
      ++pos_;
    else if (sees("\\\n"))
      pos_ += 2;
    else
      return;
  }
}

void ShellReader::skip_comment() {
  while (!at_end() && peek() != '\n') ++pos_;
}

void ShellReader::skip_lines() {
  for (;;) {
    skip_blanks();
    if (at_end()) return;
    if (peek() == '\n')
      newline();
    else if (peek() == '#')
      skip_comment();
    else
      return;
  }
}

void ShellReader::newline() {
  ++pos_;
  here_bodies();
}

std::string_view ShellReader::raw_word() const {
  std::size_t end = pos_;
  while (end < text_.size() && !is_shell_meta(text_[end])) ++end;
  return text_.substr(pos_, end - pos_);
}

// ---- lists ----------------------------------------------------------------------------------------------------------

void ShellReader::read() { list(Stop::end); }

void ShellReader::list(Stop stop) {
  while (!failed_) {
    skip_blanks();
    if (at_end()) return stop == Stop::end ? void() : fail("a parenthesis or case is not closed");
    char c = peek();
    if (c == '\n') {
      newline();
    } else if (c == '#') {
      skip_comment();
    } else if (c == ')') {
      if (stop != Stop::paren) return fail("a parenthesis closes nothing");
      ++pos_;
      return;
    } else if (sees(";;") || sees(";&")) {
      if (stop != Stop::case_item) return fail(";; stands outside of case");
      pos_ += sees(";;&") ? 3 : 2;
      return;
    } else if (c == ';' || c == '|' || (c == '&' && peek(1) != '>')) {
      ++pos_;
    } else if (sees("((")) {
      double_paren(true);
    } else if (c == '(') {
      ++pos_;
      subshell();
    } else if (stop == Stop::case_item && raw_word() == "esac") {
      return;
    } else {
      simple();
    }
  }
}

void ShellReader::subshell() {
  if (!deeper()) return;
  ++depth_;
  // Whose line ends a here-document that was begun outside is a question shells answer differently.
  if (!pending_.empty()) return fail("a here-document is not closed before a parenthesis");
  list(Stop::paren);
  if (!pending_.empty()) fail("a here-document is not closed before a parenthesis");
  --depth_;
}

void ShellReader::emit(ShellCommand command, std::size_t other_from) {
  if (command.words.empty()) return;
  // `cmd &> file word`: an argument for bash, a program for a shell that knows no &>.
  if (other_from != npos && other_from > 0 && other_from < command.words.size() && command.words[other_from].exact())
    out_.add({{command.words.begin() + static_cast<std::ptrdiff_t>(other_from), command.words.end()}, {}});
  if (!command.words.front().exact() && command.why.empty()) command.why = "its program is known only when it runs";
  out_.add(std::move(command));
}

bool ShellReader::skip_function_head(const ShellCommand& command) {
  auto close = text_.find_first_not_of(" \t", pos_ + 1);
  if (command.words.size() != 1 || close == npos || text_[close] != ')') return false;
  pos_ = close + 1;
  return true;
}

// A=(x y): the words are data, but what is substituted in them runs.
bool ShellReader::array_value() {
  ++pos_;
  for (;;) {
    skip_lines();
    if (at_end()) return false;
    if (peek() == ')') break;
    if (is_shell_meta(peek()) && !sees("<(") && !sees(">(")) return false;
    [[maybe_unused]] auto item = word();
  }
  ++pos_;
  return true;
}

void ShellReader::simple() {
  ShellCommand command;
  std::size_t other_from = npos;
  bool prefixed = false;
  while (!failed_) {
    skip_blanks();
    if (at_end()) break;
    char c = peek();
    bool process = (c == '<' || c == '>') && peek(1) == '(';
    if (c == '\n' || c == ';' || c == ')' || c == '|' || (c == '&' && peek(1) != '>')) break;
    if (c == '#') {
      skip_comment();
      break;
    }
    if (c == '(') {
      if (!prefixed && skip_function_head(command)) return;
      return fail("a parenthesis stands where none can be read");
    }
    if (c == '&' || ((c == '<' || c == '>') && !process)) {
      if (c == '&') other_from = command.words.size();
      if (!redirect()) return fail("a redirection has no target");
      prefixed = true;
      continue;
    }
    auto start = pos_;
    auto raw_ahead = raw_word();
    auto assigned = command.words.empty() ? assignment_length(raw_ahead) : 0;
    if (command.words.empty() && !prefixed && reserved(raw_ahead)) return;
    auto next = word();
    auto raw = text_.substr(start, pos_ - start);
    if ((peek() == '<' || peek() == '>') && is_descriptor(raw)) continue;
    if (assigned > 0) {
      prefixed = true;
      if (is_loaded_variable(raw.substr(0, raw.find_first_of("+=["))))
        out_.add_unknown(cat(raw.substr(0, raw.find_first_of("+=[")), " makes a program run that is not named here"));
      if (peek() == '(' && raw.ends_with('=') && !array_value()) return fail("a list is not closed");
      continue;
    }
    command.words.push_back(std::move(next));
  }
  emit(std::move(command), other_from);
}

// ---- reserved words -------------------------------------------------------------------------------------------------

// At the place of a program. What follows most of them is again the place of a program, so nothing else need be known.
bool ShellReader::reserved(std::string_view raw) {
  if (std::find(std::begin(kSkipped), std::end(kSkipped), raw) != std::end(kSkipped)) {
    pos_ += raw.size();
    return true;
  }
  if (raw == "time") {
    pos_ += raw.size();
    skip_blanks();
    if (raw_word() == "-p" || raw_word() == "--") pos_ += 2;
  } else if (raw == "for" || raw == "select") {
    pos_ += raw.size();
    read_for();
  } else if (raw == "case") {
    pos_ += raw.size();
    read_case();
  } else if (raw == "function") {
    pos_ += raw.size();
    read_function();
  } else if (raw == "[[") {
    pos_ += raw.size();
    pieces("]]", true);
  } else if (raw == "coproc") {
    fail("coproc is not read");
  } else {
    return false;
  }
  return true;
}

void ShellReader::read_for() {
  skip_blanks();
  if (sees("((")) return double_paren(false);
  [[maybe_unused]] auto name = word();
  skip_lines();
  if (raw_word() != "in") return;
  pos_ += 2;
  for (;;) {
    skip_blanks();
    bool process = sees("<(") || sees(">(");
    if (at_end() || (is_shell_meta(peek()) && !process) || peek() == '#') return;
    [[maybe_unused]] auto item = word();
  }
}

void ShellReader::read_case() {
  skip_blanks();
  if (is_shell_meta(peek())) return fail("case has no word");
  [[maybe_unused]] auto subject = word();
  skip_lines();
  if (raw_word() != "in") return fail("case has no in");
  pos_ += 2;
  if (!deeper()) return;
  ++depth_;
  while (!failed_) {
    skip_lines();
    if (at_end()) {
      fail("case has no esac");
      break;
    }
    if (raw_word() == "esac") {
      pos_ += 4;
      break;
    }
    if (peek() == '(') ++pos_;
    for (skip_blanks(); !at_end() && peek() != ')'; skip_blanks()) {
      if (peek() == '|') {
        ++pos_;
      } else if (is_shell_meta(peek())) {
        fail("a pattern of case is not read");
      } else {
        [[maybe_unused]] auto pattern = word();
      }
    }
    if (at_end()) {
      fail("a pattern of case is not closed");
      break;
    }
    ++pos_;
    list(Stop::case_item);
  }
  --depth_;
}

void ShellReader::read_function() {
  skip_blanks();
  if (is_shell_meta(peek())) return fail("a function has no name");
  [[maybe_unused]] auto name = word();
  skip_blanks();
  if (peek() != '(') return;
  auto close = text_.find_first_not_of(" \t", pos_ + 1);
  if (close != npos && text_[close] == ')') pos_ = close + 1;  // otherwise the body is a subshell
}

// ---- [[ ... ]] and (( ... )) ------------------------------------------------------------------------------------------

// What an expression of bash is to a shell that does not know [[ and ((: a command, unless its words say that it is none.
bool ShellReader::could_run(const ShellCommand& piece) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_./0123456789-";
  if (piece.words.empty() || !piece.words[0].exact()) return false;
  std::string_view program = piece.words[0].text;
  if (program.empty() || program.find_first_not_of(kLetters) != npos || kLetters.find(program[0]) >= 55) return false;
  return piece.words.size() == 1 || !piece.words[1].exact() || piece.words[1].text.find_first_not_of("=<>+-*/%!&|?~^:,") != npos;
}

// The words of an expression up to what closes it; what is substituted in it runs in any case.
void ShellReader::pieces(std::string_view closing, bool both) {
  ShellCommand piece;
  std::size_t open = 0;  // parentheses inside
  auto flush = [&] {
    if (both && could_run(piece)) out_.add(std::move(piece));
    piece = {};
  };
  while (!failed_) {
    skip_blanks();
    if (at_end()) return fail(cat(closing, " is missing"));
    char c = peek();
    if (closing == "))" && c == ')' && open == 0) {
      flush();
      if (!sees("))")) return fail("parentheses are neither an expression nor a subshell");
      pos_ += 2;
      return;
    }
    if (closing == "]]" && raw_word() == "]]") {
      pos_ += 2;
      return flush();
    }
    if (c == '\n') {
      flush();
      newline();
    } else if (is_shell_meta(c) && !sees("<(") && !sees(">(")) {
      flush();
      if (c == ')' && open == 0) return fail("a parenthesis closes nothing");
      if (c == '(') ++open;
      if (c == ')') --open;
      ++pos_;
    } else {
      piece.words.push_back(word());
    }
  }
}

void ShellReader::double_paren(bool both) {
  if (!deeper()) return;
  ++depth_;
  pos_ += 2;
  pieces("))", both);
  --depth_;
}

// ---- redirections ---------------------------------------------------------------------------------------------------

bool ShellReader::redirect() {
  if (peek() == '&') ++pos_;
  if (sees("<<<")) {
    pos_ += 3;
  } else if (sees("<<")) {
    pos_ += 2;
    bool strip = peek() == '-';
    if (strip) ++pos_;
    here_document(strip);
    return !failed_;
  } else {
    pos_ += sees(">>") || sees(">&") || sees("<&") || sees("<>") || sees(">|") ? 2 : 1;
  }
  skip_blanks();
  bool process = sees("<(") || sees(">(");
  if (at_end() || (is_shell_meta(peek()) && !process)) return false;
  [[maybe_unused]] auto target = word();
  return true;
}

void ShellReader::here_document(bool strip_tabs) {
  skip_blanks();
  if (at_end() || is_shell_meta(peek())) return fail("a here-document has no end mark");
  auto start = pos_;
  auto delimiter = word();
  auto raw = text_.substr(start, pos_ - start);
  // Nothing is expanded in an end mark: with a dollar in it the raw text is the mark.
  bool quoted = raw.find_first_of("'\"\\") != npos;
  if (quoted && !delimiter.exact()) return fail("the end mark of a here-document is not read");
  pending_.push_back({quoted ? delimiter.text : std::string(raw), quoted, strip_tabs});
}

void ShellReader::here_bodies() {
  auto pending = std::exchange(pending_, {});
  for (const auto& here : pending) {
    auto start = pos_;
    auto end = text_.size();
    bool found = false;
    while (!found && pos_ < text_.size()) {
      auto line_end = std::min(text_.find('\n', pos_), text_.size());
      auto line = text_.substr(pos_, line_end - pos_);
      while (here.strip_tabs && line.starts_with('\t')) line.remove_prefix(1);
      found = line == here.delimiter;
      if (found) end = pos_;
      pos_ = std::min(line_end + 1, text_.size());
    }
    // Shells disagree on a last line that closes a parenthesis in the same breath.
    if (!found) return fail("a here-document is not closed");
    if (here.quoted || !deeper()) continue;
    ShellReader(text_.substr(start, end - start), depth_ + 1, out_).read_quoted();
  }
}

}  // namespace osb
