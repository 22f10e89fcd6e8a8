#include "execd/frames.h"

#include "base/text.h"

namespace osb::execd {
namespace {

std::size_t length_at(std::string_view head) {
  std::size_t length = 0;
  for (std::size_t i = 1; i < kFrameHead; ++i) length = length << 8 | static_cast<unsigned char>(head[i]);
  return length;
}

const char* problem_with(std::uint8_t type, std::size_t length) {
  if (type > static_cast<std::uint8_t>(FrameType::resize)) return "unknown frame type";
  if (length > kMaxFramePayload) return "frame longer than 65536 bytes";
  if (type == static_cast<std::uint8_t>(FrameType::input_end) && length != 0) return "end of input carries bytes";
  if (type == static_cast<std::uint8_t>(FrameType::signal) && length != 1) return "a signal is one byte";
  if (type == static_cast<std::uint8_t>(FrameType::resize) && length != 4) return "a window size is four bytes";
  return nullptr;
}

}  // namespace

void put_frame_head(char* at, FrameType type, std::size_t payload_size) {
  *at++ = static_cast<char>(type);
  for (int shift = 24; shift >= 0; shift -= 8) *at++ = static_cast<char>(payload_size >> shift & 0xFF);
}

std::string make_frame(FrameType type, std::string_view payload) {
  std::string frame(kFrameHead, '\0');
  put_frame_head(frame.data(), type, payload.size());
  frame += payload;
  return frame;
}

std::string ending_json(const ExitStatus& status) {
  std::string out = cat("{\"exit_code\":", status.cause == Cause::timed_out ? 124 : status.code);
  if (status.signal != 0) out += cat(",\"signal\":", status.signal);
  out += cat(",\"cause\":\"", name_of(status.cause), "\"");
  if (auto advice = advise(status); !advice.empty()) {
    out += ",\"advice\":";
    append_json_string(out, advice);
  }
  return out += "}";
}

WindowSize Frame::size() const {
  auto number = [this](std::size_t i) {
    return static_cast<std::uint16_t>(static_cast<unsigned char>(payload[i]) << 8 | static_cast<unsigned char>(payload[i + 1]));
  };
  return {.cols = number(0), .rows = number(2)};
}

void FrameDecoder::feed(std::string_view bytes) {
  buffer_.erase(0, at_);
  at_ = 0;
  buffer_ += bytes;
}

Result<std::optional<Frame>> FrameDecoder::next() {
  std::string_view rest = std::string_view(buffer_).substr(at_);
  if (rest.size() < kFrameHead) return std::optional<Frame>();
  auto type = static_cast<std::uint8_t>(rest[0]);
  std::size_t length = length_at(rest);
  if (const char* problem = problem_with(type, length)) return Error(Errc::malformed, problem);
  if (rest.size() < kFrameHead + length) return std::optional<Frame>();
  at_ += kFrameHead + length;
  return std::optional(Frame{static_cast<FrameType>(type), rest.substr(kFrameHead, length)});
}

}  // namespace osb::execd
