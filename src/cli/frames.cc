#include "cli/frames.h"

#include <boost/json.hpp>

#include "base/text.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

std::size_t length_at(std::string_view head) {
  std::size_t length = 0;
  for (std::size_t i = 1; i < kFrameHead; ++i) length = length << 8 | static_cast<unsigned char>(head[i]);
  return length;
}

bool comes_from_execd(std::uint8_t type) { return type >= 10 && type <= 12; }

int small_int(const json::object& object, std::string_view key, int highest) {
  const auto* value = object.if_contains(key);
  if (value == nullptr || !value->is_int64()) return 0;
  auto number = value->get_int64();
  return number < 0 || number > highest ? highest : static_cast<int>(number);
}

std::string text_of(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace

std::array<char, kFrameHead> frame_head(FrameType type, std::size_t n) {
  auto byte = [n](unsigned shift) { return static_cast<char>(static_cast<unsigned char>(n >> shift)); };
  return {static_cast<char>(type), byte(24), byte(16), byte(8), byte(0)};
}

void append_frame(std::string& out, FrameType type, std::string_view payload) {
  auto head = frame_head(type, payload.size());
  out.append(head.data(), head.size());
  out += payload;
}

void FrameDecoder::feed(std::string_view bytes) {
  buffer_.erase(0, at_);
  at_ = 0;
  buffer_ += bytes;
}

Result<std::optional<Frame>> FrameDecoder::next() {
  std::string_view rest = std::string_view(buffer_).substr(at_);
  if (rest.size() < kFrameHead) return std::optional<Frame>{};
  auto type = static_cast<std::uint8_t>(rest[0]);
  auto length = length_at(rest);
  if (!comes_from_execd(type) || length > kMaxFramePayload) return Error(Errc::malformed, "the sandbox sent a frame that makes no sense");
  if (rest.size() < kFrameHead + length) return std::optional<Frame>{};
  at_ += kFrameHead + length;
  return std::optional<Frame>{Frame{static_cast<FrameType>(type), rest.substr(kFrameHead, length)}};
}

Result<Ending> parse_ending(std::string_view text) {
  boost::system::error_code failed;
  auto value = json::parse({text.data(), text.size()}, failed);
  if (failed || !value.is_object()) return Error(Errc::malformed, "the sandbox did not say how the command ended");
  const auto& object = value.get_object();
  return Ending{small_int(object, "exit_code", 255), small_int(object, "signal", 127), text_of(object, "cause"), text_of(object, "advice")};
}

}  // namespace osb::cli
