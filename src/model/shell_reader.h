// The reader behind split_shell: one pass over the text, recursive where shells nest.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/shell_split.h"

namespace osb {

class ShellReader {
 public:
  ShellReader(std::string_view text, int depth, ShellCommands& out) : text_(text), depth_(depth), out_(out) {}
  void read();         // a whole script
  void read_quoted();  // text between double quotes, or of a here-document: only what is substituted in it is run

 private:
  enum class Stop { end, paren, case_item };
  enum class Quoted { no, yes };
  struct Wanted {
    ShellWord word;
    bool begun = false;  // something stands there, maybe an empty quoted text
  };
  struct Here {
    std::string delimiter;
    bool quoted = false;
    bool strip_tabs = false;
  };

  // grammar (shell_reader.cc)
  void list(Stop stop);
  void subshell();
  void simple();
  bool reserved(std::string_view raw);
  void read_for();
  void read_case();
  void read_function();
  void double_paren(bool both);  // both: a shell that does not know (( reads commands in it
  void pieces(std::string_view closing, bool both);
  static bool could_run(const ShellCommand& piece);
  bool redirect();
  void here_document(bool strip_tabs);
  void here_bodies();
  bool skip_function_head(const ShellCommand& command);
  bool array_value();
  void emit(ShellCommand command, std::size_t other_from);

  // words (shell_words.cc)
  ShellWord word();
  void quoted_part(Wanted& into);
  void dollar(Wanted& into, Quoted quoted);
  void ansi_quoted(Wanted& into);
  void braces(Wanted& into, Quoted quoted);
  void backticks(Wanted& into, Quoted quoted);
  void bracket_or_brace(Wanted& into);
  void unsure(Wanted& into, ShellWord::Sure how) const;
  static void put(Wanted& into, char c);

  // characters
  bool at_end() const { return failed_ || pos_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0'; }
  bool sees(std::string_view what) const { return text_.substr(pos_).starts_with(what); }
  void skip_blanks();
  void skip_lines();  // blanks, newlines and comments
  void skip_comment();
  void newline();
  std::string_view raw_word() const;  // unquoted letters ahead, up to a metacharacter
  void fail(std::string why);
  bool deeper();

  std::string_view text_;
  std::size_t pos_ = 0;
  int depth_;
  ShellCommands& out_;
  std::vector<Here> pending_;
  bool failed_ = false;
};

bool is_shell_meta(char c);  // ends a word when not quoted
// "NAME=", "NAME+=", "NAME[...]=" at the start of `raw`: the length of that, 0 = no assignment.
std::size_t assignment_length(std::string_view raw);

}  // namespace osb
