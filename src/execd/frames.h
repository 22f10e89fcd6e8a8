// Frames of POST /osb/v1/exec after the 101: one byte of type, four of length (big-endian), the payload.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "execd/exit_status.h"
#include "execd/pty/device.h"

namespace osb::execd {

inline constexpr std::size_t kFrameHead = 5;
inline constexpr std::size_t kMaxFramePayload = 65536;

enum class FrameType : std::uint8_t {
  input = 0,
  input_end = 1,
  signal = 2,
  resize = 3,  // of the terminal: columns and rows, two bytes each, big-endian
  output = 10,
  error_output = 11,
  end = 12,
};

// Writes the five bytes in front of `payload_size` bytes of payload.
void put_frame_head(char* at, FrameType type, std::size_t payload_size);
std::string make_frame(FrameType type, std::string_view payload);
// The payload of FrameType::end. A timeout has the exit code of timeout(1), 124.
std::string ending_json(const ExitStatus& status);

struct Frame {
  FrameType type{};
  std::string_view payload;  // lives until the next feed()
  WindowSize size() const;   // of a resize
};

// Frames from the client. A type that clients do not send, a length past the maximum, a signal of another size than
// one byte, a resize of another than four or an end that carries bytes is an error that ends the conversation.
class FrameDecoder {
 public:
  void feed(std::string_view bytes);
  Result<std::optional<Frame>> next();  // nullopt: a whole frame is not there yet

 private:
  std::string buffer_;
  std::size_t at_ = 0;
};

}  // namespace osb::execd
