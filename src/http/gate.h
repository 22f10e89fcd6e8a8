// The gate: looks at every raw byte of a message head before any parser does.
//
// Two programs that disagree about where a message ends can be played against each other. The gate therefore
// accepts only heads that every implementation reads the same way: CRLF lines, a token and a colon in front of each
// value, no folding, no control characters. It is fed as bytes arrive and looks at each byte once.
#pragma once
#include <cstddef>
#include <string_view>

namespace osb::http {

// Why a message is refused; `status` is what a server answers. Texts are constants.
struct Refusal {
  int status = 0;  // 0: not refused
  std::string_view code;
  std::string_view message;
  explicit operator bool() const noexcept { return status != 0; }
};

struct GateLimits {
  std::size_t head_bytes;
  std::size_t fields;
  std::size_t first_line_bytes;
};

class Gate {
 public:
  explicit Gate(GateLimits limits) : limits_(limits) {}

  // `bytes` are all bytes of the message so far; a longer view of the same bytes may follow while done() is false.
  Refusal scan(std::string_view bytes);
  bool done() const noexcept { return head_bytes_ != 0; }
  // Length of the head with its empty line, once done.
  std::size_t head_bytes() const noexcept { return head_bytes_; }
  void reset() noexcept { at_ = line_ = fields_ = head_bytes_ = 0; }

 private:
  Refusal end_line(std::string_view line);
  Refusal check_growth(std::size_t size) const;

  GateLimits limits_;
  std::size_t at_ = 0;    // first byte not yet looked at
  std::size_t line_ = 0;  // where the current line starts
  std::size_t fields_ = 0;
  std::size_t head_bytes_ = 0;
};

}  // namespace osb::http
