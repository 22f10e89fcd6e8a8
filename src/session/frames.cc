#include "session/frames.h"

#include <algorithm>

namespace osb::session {
namespace {

constexpr std::size_t kHead = 5;

}  // namespace

std::string make_frame(FrameType type, std::string_view payload) {
  auto size = static_cast<std::uint32_t>(payload.size());
  std::string out(1, static_cast<char>(type));
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(size >> shift & 0xFF);
  return out += payload;
}

std::string input_frames(std::string_view bytes) {
  std::string out;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kMaxFramePayload)))
    out += make_frame(FrameType::input, bytes.substr(0, kMaxFramePayload));
  return out;
}

Result<std::optional<Frame>> FrameReader::next() {
  if (buffer_.size() < kHead) return std::optional<Frame>();
  auto type = static_cast<FrameType>(buffer_[0]);
  std::uint32_t size = 0;
  for (std::size_t i = 1; i < kHead; ++i) size = size << 8 | static_cast<unsigned char>(buffer_[i]);
  bool known = type == FrameType::output || type == FrameType::error_output || type == FrameType::end;
  if (!known || size > kMaxFramePayload) return Error(Errc::unavailable, "execd breaks its own protocol");
  if (buffer_.size() < kHead + size) return std::optional<Frame>();
  Frame frame{type, buffer_.substr(kHead, size)};
  buffer_.erase(0, kHead + size);
  return std::optional(std::move(frame));
}

}  // namespace osb::session
