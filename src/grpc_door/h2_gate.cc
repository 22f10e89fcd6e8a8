#include "grpc_door/h2_gate.h"

#include <algorithm>

namespace osb::grpc_door {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// The library may announce more than the 16 KiB every server takes; flow control bounds what is in flight.
constexpr std::uint32_t kMaxData = 4u << 20;

enum Type : std::uint8_t { kData, kHeaders, kPriority, kReset, kSettings, kPush, kPing, kGoaway, kWindow, kContinuation };
constexpr std::uint8_t kEndStream = 0x1;
constexpr std::uint8_t kEndHeaders = 0x4;

}  // namespace

bool Bucket::take(std::chrono::steady_clock::time_point now) {
  double passed = std::chrono::duration<double>(now - last_).count();
  if (last_ != std::chrono::steady_clock::time_point{}) left_ = std::min(burst_, left_ + std::max(0.0, passed) * rate_);
  last_ = now;
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

bool H2Gate::refuse(std::string_view why) {
  why_ = why;
  return false;
}

bool H2Gate::greet(std::string_view& bytes) {
  auto count = std::min(bytes.size(), kPreface.size() - preface_);
  if (bytes.substr(0, count) != kPreface.substr(preface_, count)) return refuse("it does not speak HTTP/2");
  preface_ += count;
  bytes.remove_prefix(count);
  greeted_ = preface_ == kPreface.size();
  return true;
}

bool H2Gate::take(std::string_view bytes, std::chrono::steady_clock::time_point now) {
  if (!why_.empty()) return false;
  if (!greeted_ && !greet(bytes)) return false;
  while (!bytes.empty()) {
    if (payload_left_ > 0) {
      auto count = std::min(bytes.size(), payload_left_);
      payload_left_ -= count;
      bytes.remove_prefix(count);
      continue;
    }
    auto count = std::min(bytes.size(), head_.size() - head_have_);
    bytes.copy(head_.data() + head_have_, count);
    head_have_ += count;
    bytes.remove_prefix(count);
    if (head_have_ == head_.size() && !begin_frame(now)) return false;
  }
  return true;
}

bool H2Gate::begin_frame(std::chrono::steady_clock::time_point now) {
  auto byte = [this](std::size_t i) { return static_cast<std::uint8_t>(head_[i]); };
  length_ = std::uint32_t{byte(0)} << 16 | std::uint32_t{byte(1)} << 8 | byte(2);
  type_ = byte(3);
  flags_ = byte(4);
  head_have_ = 0;
  payload_left_ = length_;
  if (first_frame_ && type_ != kSettings) return refuse("the first frame is no SETTINGS");
  first_frame_ = false;
  if (!check_size()) return refuse("a frame has a length its kind never has");
  if (!check_headers()) return refuse("a block of headers is too long or broken");
  if (!budget().take(now)) return refuse("too many frames of one kind");
  return true;
}

bool H2Gate::check_size() const {
  switch (type_) {
    case kData: return length_ <= kMaxData;
    case kHeaders:
    case kContinuation: return length_ <= kMaxHeaderBlock;
    case kPriority: return length_ == 5;
    case kReset:
    case kWindow: return length_ == 4;
    case kPing: return length_ == 8;
    case kSettings: return length_ <= 6 * 32;
    case kPush: return false;
    default: return length_ <= 1024;
  }
}

// Between HEADERS without END_HEADERS and the CONTINUATION that has it nothing else may come.
bool H2Gate::check_headers() {
  if (in_headers_ != (type_ == kContinuation)) return false;
  if (type_ != kHeaders && type_ != kContinuation) return true;
  header_bytes_ = type_ == kHeaders ? length_ : header_bytes_ + length_;
  continuations_ = type_ == kHeaders ? 0 : continuations_ + 1;
  in_headers_ = (flags_ & kEndHeaders) == 0;
  return header_bytes_ <= kMaxHeaderBlock && continuations_ <= kMaxContinuations;
}

Bucket& H2Gate::budget() {
  switch (type_) {
    case kData: return length_ == 0 && (flags_ & kEndStream) == 0 ? empty_data_ : data_;
    case kHeaders:
    case kContinuation: return headers_;
    case kReset: return resets_;
    case kPing: return pings_;
    case kSettings: return settings_;
    case kWindow: return windows_;
    default: return others_;
  }
}

std::string goaway() {
  constexpr char kFrame[] = "\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0b";
  return {kFrame, sizeof kFrame - 1};
}

}  // namespace osb::grpc_door
