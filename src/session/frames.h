// Our side of execd's frames (spec/execd.yaml, /osb/v1/exec): one byte of type, four of length (big-endian), the payload.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb::session {

enum class FrameType : std::uint8_t { input = 0, input_end = 1, signal = 2, resize = 3, output = 10, error_output = 11, end = 12 };

inline constexpr std::size_t kMaxFramePayload = 65536;

std::string make_frame(FrameType type, std::string_view payload);
std::string input_frames(std::string_view bytes);  // as many as it takes

struct Frame {
  FrameType type{};
  std::string payload;
};

// Frames from execd, which may send anything: a type or a length it must not send is an error.
class FrameReader {
 public:
  void feed(std::string_view bytes) { buffer_ += bytes; }
  Result<std::optional<Frame>> next();  // nullopt: a whole frame is not there yet

 private:
  std::string buffer_;
};

}  // namespace osb::session
