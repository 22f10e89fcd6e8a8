// LineSplitter: bytes in, lines out, for the event stream of commands.
//
// "\n", "\r" and "\r\n" end a line, also when a read falls between the two. An empty line is the text "\n". A line
// longer than kMaxLine comes in several pieces, cut between UTF-8 sequences. Memory: at most kMaxLine bytes.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace osb::execd {

class LineSplitter {
 public:
  static constexpr std::size_t kMaxLine = 32 * 1024;

  // Takes bytes off the front of `input` up to the end of one line. nullopt: input is used up, the line goes on.
  // The view lives until the next call and no longer than the bytes behind `input`.
  std::optional<std::string_view> next(std::string_view& input);
  // The unterminated line at the end of the output, if any.
  std::optional<std::string_view> rest();

 private:
  std::string_view piece(std::string_view& input);
  void forget_taken();

  std::string partial_;
  std::size_t taken_ = 0;   // bytes of partial_ given out by the last call
  bool after_cr_ = false;   // a "\n" that comes now belongs to the "\r" before it
  bool continued_ = false;  // pieces of this line are out already, so its end is not an empty line
};

}  // namespace osb::execd
