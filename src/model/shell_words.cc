// Words of a shell line: quotes taken off, substitutions read, what is not certain marked.
#include <algorithm>

#include "base/text.h"
#include "model/shell_reader.h"

namespace osb {
namespace {

constexpr auto npos = std::string_view::npos;
using Sure = ShellWord::Sure;
constexpr std::size_t kLookAhead = 512;

bool is_digit(char c, int base) {
  if (base == 8) return c >= '0' && c <= '7';
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'f');
}
unsigned digit_of(char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : lower(c) - 'a' + 10); }

void append_utf8(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | ((code >> 18) & 0x07));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// The text of $'...' as bash reads it; false when it means nothing certain.
bool decode_ansi(std::string_view text, std::string& out) {
  constexpr std::string_view kPlain = "abefnrtv\\'\"?E";
  constexpr std::string_view kMeant = "\a\b\x1b\f\n\r\t\v\\'\"?\x1b";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return false;
    char c = text[i];
    if (auto known = kPlain.find(c); known != npos) {
      out += kMeant[known];
      continue;
    }
    int base = c >= '0' && c <= '7' ? 8 : 16;
    std::size_t most = base == 8 ? 3 : c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (most == 0) return false;
    std::size_t from = base == 8 ? i : i + 1;
    std::size_t end = from;
    unsigned code = 0;
    while (end < text.size() && end - from < most && is_digit(text[end], base))
      code = code * static_cast<unsigned>(base) + digit_of(text[end++]);
    if (end == from || code == 0 || code > 0x10FFFF) return false;
    if (c == 'u' || c == 'U')
      append_utf8(out, code);
    else
      out += static_cast<char>(code);
    i = end - 1;
  }
  return true;
}

}  // namespace

void ShellReader::put(Wanted& into, char c) {
  (into.word.exact() ? into.word.text : into.word.tail) += c;
  into.begun = true;
}

void ShellReader::unsure(Wanted& into, Sure how) const {
  into.begun = true;
  into.word.sure = std::max(into.word.sure, how);
  into.word.tail.clear();
  // Any number of words: neither its start nor its end says anything about each of them.
  if (into.word.sure == Sure::open) into.word.text.clear();
}

ShellWord ShellReader::word() {
  Wanted into;
  std::size_t start = pos_;
  while (!at_end()) {
    char c = peek();
    if ((c == '<' || c == '>') && peek(1) == '(') {
      pos_ += 2;
      subshell();
      unsure(into, Sure::partly);
      continue;
    }
    if (is_shell_meta(c)) break;
    switch (c) {
      case '\\':
        if (peek(1) != '\n' && pos_ + 1 < text_.size()) put(into, peek(1));
        if (pos_ + 1 == text_.size()) put(into, '\\');
        pos_ = std::min(pos_ + 2, text_.size());
        break;
      case '\'': {
        auto end = text_.find('\'', pos_ + 1);
        if (end == npos) {
          fail("a quotation mark is not closed");
          break;
        }
        into.begun = true;
        for (auto i = pos_ + 1; i < end; ++i) put(into, text_[i]);
        pos_ = end + 1;
        break;
      }
      case '"': quoted_part(into); break;
      case '$': dollar(into, Quoted::no); break;
      case '`': backticks(into, Quoted::no); break;
      case '~':
        if (pos_ == start)
          unsure(into, Sure::partly);
        else
          put(into, c);
        ++pos_;
        break;
      case '*':
      case '?':
        unsure(into, Sure::partly);
        ++pos_;
        break;
      case '[':
      case '{': bracket_or_brace(into); break;
      default: put(into, c); ++pos_;
    }
  }
  // An open word says nothing about its ends, also not what was put there after it became one.
  if (into.word.sure == Sure::open) into.word.tail.clear();
  return std::move(into.word);
}

// A glob set or a brace list, where one may close. "[" alone is the program, "{}" is text. The look ahead is bounded; what it
// does not reach counts as a list.
void ShellReader::bracket_or_brace(Wanted& into) {
  auto ahead = text_.substr(pos_, kLookAhead);
  ahead = ahead.substr(0, ahead.find('\n'));
  bool reached = pos_ + ahead.size() < text_.size() && ahead.size() == kLookAhead;
  if (peek() == '[') {
    auto word_end = ahead.find_first_of(" \t;&|<>()");
    auto close = ahead.substr(0, word_end).find(']', 2);
    if (close != npos || (word_end == npos && reached))
      unsure(into, Sure::partly);
    else
      put(into, '[');
  } else {
    bool separated = ahead.find(',') != npos || ahead.find("..") != npos;
    if (reached || (separated && ahead.find('}') != npos && ahead[1] != '}'))
      unsure(into, Sure::open);
    else
      put(into, '{');
  }
  ++pos_;
}

void ShellReader::quoted_part(Wanted& into) {
  ++pos_;
  into.begun = true;
  while (!at_end()) {
    char c = peek();
    if (c == '"') {
      ++pos_;
      return;
    }
    if (c == '\\' && pos_ + 1 < text_.size()) {
      char next = peek(1);
      bool escapes = std::string_view("\"\\$`\n").find(next) != npos;
      if (!escapes) put(into, '\\');
      if (next != '\n') put(into, next);
      pos_ += 2;
    } else if (c == '$') {
      dollar(into, Quoted::yes);
    } else if (c == '`') {
      backticks(into, Quoted::yes);
    } else {
      put(into, c);
      ++pos_;
    }
  }
  fail("a quotation mark is not closed");
}

void ShellReader::read_quoted() {
  Wanted ignored;
  while (!at_end()) {
    if (peek() == '\\') {
      pos_ = std::min(pos_ + 2, text_.size());
    } else if (peek() == '$') {
      dollar(ignored, Quoted::yes);
    } else if (peek() == '`') {
      backticks(ignored, Quoted::yes);
    } else {
      ++pos_;
    }
  }
}

void ShellReader::dollar(Wanted& into, Quoted quoted) {
  auto how = quoted == Quoted::yes ? Sure::partly : Sure::open;
  ++pos_;
  char c = peek();
  if (sees("((")) {
    double_paren(false);
    return unsure(into, Sure::partly);
  }
  if (c == '(') {
    ++pos_;
    subshell();
    return unsure(into, how);
  }
  if (c == '{') return braces(into, quoted);
  if (c == '\'' && quoted == Quoted::no) return ansi_quoted(into);
  if (c == '"' && quoted == Quoted::no) return;  // a translated text: read as a quoted one
  if (c == '[' && quoted == Quoted::no) {        // old arithmetic
    fail("$[...] is not read");
    return;
  }
  auto is_name = [](char x) { return (lower(x) >= 'a' && lower(x) <= 'z') || x == '_' || (x >= '0' && x <= '9'); };
  if (!is_name(c)) {
    if (c == '\0' || std::string_view("@*#?-$!").find(c) == npos) return put(into, '$');
    ++pos_;
    return unsure(into, c == '@' || c == '*' ? Sure::open : how);
  }
  bool digit = c >= '0' && c <= '9';
  do ++pos_;
  while (!digit && is_name(peek()) && pos_ < text_.size());
  unsure(into, how);
}

// bash reads escapes in it, other shells end it at the first quotation mark: only where both end it in the same place is it read.
void ShellReader::ansi_quoted(Wanted& into) {
  auto end = text_.find('\'', pos_ + 1);
  if (end == npos) return fail("a quotation mark is not closed");
  auto inside = text_.substr(pos_ + 1, end - pos_ - 1);
  std::string text;
  std::size_t slashes = 0;
  while (slashes < inside.size() && inside[inside.size() - 1 - slashes] == '\\') ++slashes;
  if (slashes % 2 == 1 || !decode_ansi(inside, text)) return fail("a text in $'...' means different things to different shells");
  into.begun = true;
  for (char c : text) put(into, c);
  pos_ = end + 1;
}

// ${...}: its value is not known, what is substituted in it runs.
void ShellReader::braces(Wanted& into, Quoted quoted) {
  if (!deeper()) return;
  ++depth_;
  auto start = ++pos_;
  bool many = false;
  while (!at_end() && peek() != '}') {
    char c = peek();
    Wanted ignored;
    if (c == '@' || c == '*') many = true;
    if (c == '\\') {
      pos_ = std::min(pos_ + 2, text_.size());
    } else if (c == '\'' && quoted == Quoted::no) {
      auto end = text_.find('\'', pos_ + 1);
      if (end == npos) return fail("a quotation mark is not closed");
      pos_ = end + 1;
    } else if (c == '"') {
      quoted_part(ignored);
    } else if (c == '$') {
      dollar(ignored, Quoted::yes);
    } else if (c == '`') {
      backticks(ignored, Quoted::yes);
    } else {
      ++pos_;
    }
  }
  --depth_;
  if (at_end()) return fail("${ is not closed");
  if (text_.substr(start, pos_ - start).ends_with("@P")) return fail("${...@P} runs what a variable holds");
  ++pos_;
  unsure(into, quoted == Quoted::yes && !many ? Sure::partly : Sure::open);
}

void ShellReader::backticks(Wanted& into, Quoted quoted) {
  std::string inside;
  std::size_t i = pos_ + 1;
  for (; i < text_.size() && text_[i] != '`'; ++i) {
    bool escaped = text_[i] == '\\' && i + 1 < text_.size();
    char next = escaped ? text_[i + 1] : '\0';
    bool drops = escaped && (next == '`' || next == '\\' || next == '$' || (quoted == Quoted::yes && next == '"'));
    if (escaped && !drops) inside += '\\';
    if (escaped) ++i;
    inside += text_[i];
  }
  if (i >= text_.size()) return fail("a backtick is not closed");
  pos_ = i + 1;
  if (!deeper()) return;
  split_shell(inside, depth_ + 1, out_);
  unsure(into, quoted == Quoted::yes ? Sure::partly : Sure::open);
}

}  // namespace osb
