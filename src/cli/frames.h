// Frames of POST /osb/v1/exec after the 101: one byte of type, four of length (big-endian), the payload.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb::cli {

inline constexpr std::size_t kFrameHead = 5;
inline constexpr std::size_t kMaxFramePayload = 65536;

enum class FrameType : std::uint8_t {
  input = 0,      // bytes for the command's stdin
  input_end = 1,  // no more of them
  signal = 2,     // one byte: the number
  resize = 3,     // of the command's terminal: columns and rows, two bytes each, big-endian
  output = 10,    // bytes of its stdout
  error_output = 11,
  end = 12,  // JSON: how it ended
};

std::array<char, kFrameHead> frame_head(FrameType type, std::size_t payload_size);
void append_frame(std::string& out, FrameType type, std::string_view payload);

struct Frame {
  FrameType type{};
  std::string_view payload;  // into the decoder's buffer; valid until the next feed()
};

// What execd sends is hostile input: an unknown type or a length past the maximum ends the conversation.
class FrameDecoder {
 public:
  void feed(std::string_view bytes);
  Result<std::optional<Frame>> next();  // nullopt: a whole frame is not there yet
  bool empty() const { return at_ == buffer_.size(); }

 private:
  std::string buffer_;
  std::size_t at_ = 0;
};

// The payload of FrameType::end.
struct Ending {
  int exit_code = 0;  // 0..255
  int signal = 0;     // 0 = none
  std::string cause;  // exited, signalled, timed_out, out_of_memory, not_found, ...
  std::string advice;
};
Result<Ending> parse_ending(std::string_view json);

}  // namespace osb::cli
