#include "execd/lines.h"

#include <algorithm>
#include <utility>

namespace osb::execd {
namespace {

bool ends_line(char c) { return c == '\n' || c == '\r'; }

// Length of the longest prefix that does not cut a UTF-8 sequence in two; invalid text is cut anywhere.
std::size_t whole_characters(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back < text.size(); ++back) {
    auto c = static_cast<unsigned char>(text[text.size() - back]);
    if ((c & 0xC0) == 0x80) continue;
    std::size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace

void LineSplitter::forget_taken() {
  partial_.erase(0, taken_);
  taken_ = 0;
}

// The next kMaxLine bytes of a line that does not fit; what a cut character leaves behind stays in partial_.
std::string_view LineSplitter::piece(std::string_view& input) {
  std::size_t room = kMaxLine - partial_.size();
  partial_.append(input.substr(0, room));
  input.remove_prefix(room);
  taken_ = whole_characters(partial_);
  continued_ = true;
  return std::string_view(partial_).substr(0, taken_);
}

std::optional<std::string_view> LineSplitter::next(std::string_view& input) {
  forget_taken();
  while (!input.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (input.front() == '\n') {
        input.remove_prefix(1);
        continue;
      }
    }
    auto size = static_cast<std::size_t>(std::find_if(input.begin(), input.end(), ends_line) - input.begin());
    if (size > kMaxLine - partial_.size()) return piece(input);
    if (size == input.size()) {
      partial_.append(input);
      input = {};
      return std::nullopt;
    }
    std::string_view line = input.substr(0, size);
    after_cr_ = input[size] == '\r';
    input.remove_prefix(size + 1);
    if (!partial_.empty()) {
      line = partial_.append(line);
      taken_ = line.size();
    }
    bool shown = std::exchange(continued_, false);
    if (!line.empty()) return line;
    if (!shown) return "\n";
  }
  return std::nullopt;
}

std::optional<std::string_view> LineSplitter::rest() {
  forget_taken();
  after_cr_ = continued_ = false;
  if (partial_.empty()) return std::nullopt;
  taken_ = partial_.size();
  return std::string_view(partial_);
}

}  // namespace osb::execd
