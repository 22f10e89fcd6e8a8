#include "proxy/watch.h"

#include <algorithm>

#include "base/text.h"
#include "model/json.h"

namespace osb::proxy {
namespace {

constexpr JsonLimits kRecordLimits{.bytes = 4096, .depth = 8};
constexpr unsigned char kEndFrame = 12;
constexpr std::size_t kFrameHead = 5;

std::string text_member(const boost::json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  const auto* text = value ? value->if_string() : nullptr;
  return text ? std::string(text->data(), std::min<std::size_t>(text->size(), 64)) : std::string();
}

std::string int_text(const boost::json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  const auto* number = value ? value->if_int64() : nullptr;
  return number ? cat(*number) : std::string();
}

// error.evalue is the exit code as text for commands, free text for code.
CommandEnd end_of_error(const boost::json::object& event) {
  CommandEnd end{"", text_member(event, "cause")};
  const auto* value = event.if_contains("error");
  const auto* error = value ? value->if_object() : nullptr;
  if (!error) return end;
  auto evalue = text_member(*error, "evalue");
  bool is_code = parse_int<int>(evalue).has_value();
  if (is_code) end.exit_code = evalue;
  if (end.cause.empty()) end.cause = is_code ? std::string("exited") : cat("error ", text_member(*error, "ename"));
  return end;
}

}  // namespace

void EventWatch::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    auto at = bytes.find('\n');
    auto part = bytes.substr(0, at);
    if (line_.size() + part.size() > kMaxRecord) too_long_ = true;
    bool whole = at != std::string_view::npos && line_.empty();
    if (!too_long_ && !whole) line_ += part;
    if (at == std::string_view::npos) return;
    if (!too_long_) take_line(whole ? part : line_);
    line_.clear();
    too_long_ = false;
    bytes.remove_prefix(at + 1);
  }
}

// Lines as execd writes them are told apart by their first bytes; only what names an end, or is written otherwise, is parsed.
void EventWatch::take_line(std::string_view line) {
  constexpr std::string_view kType = R"({"type":")";
  constexpr std::string_view kComplete = R"({"type":"execution_complete",)";
  if (line.starts_with(kType) && line.ends_with('}')) {
    if (line.starts_with(kComplete)) {
      if (!end_) end_ = CommandEnd{"0", "exited"};
      return;
    }
    auto type = line.substr(kType.size());
    if (!type.starts_with("error") && !type.starts_with("execution_complete")) return;
  }
  bool maybe = line.find("\"error\"") != std::string_view::npos || line.find("\"execution_complete\"") != std::string_view::npos;
  if (!maybe) return;
  auto event = parse_json_object(line, kRecordLimits);
  if (!event) return;
  auto type = text_member(*event, "type");
  if (type == "execution_complete" && !end_) end_ = CommandEnd{"0", "exited"};
  if (type == "error") end_ = end_of_error(*event);
}

void FrameWatch::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (in_payload_) {
      take_payload(bytes);
      continue;
    }
    auto want = std::min(kFrameHead - head_.size(), bytes.size());
    head_ += bytes.substr(0, want);
    bytes.remove_prefix(want);
    if (head_.size() < kFrameHead) return;
    left_ = 0;
    for (std::size_t i = 1; i < kFrameHead; ++i) left_ = left_ << 8 | static_cast<unsigned char>(head_[i]);
    in_payload_ = left_ > 0;
    if (!in_payload_) head_.clear();
  }
}

void FrameWatch::take_payload(std::string_view& bytes) {
  auto part = bytes.substr(0, left_);
  bytes.remove_prefix(part.size());
  left_ -= static_cast<std::uint32_t>(part.size());
  bool is_end = static_cast<unsigned char>(head_[0]) == kEndFrame;
  if (is_end && payload_.size() + part.size() <= kMaxRecord) payload_ += part;
  if (left_ > 0) return;
  if (is_end) {
    auto end = parse_json_object(payload_, kRecordLimits);
    if (end) end_ = CommandEnd{int_text(*end, "exit_code"), text_member(*end, "cause")};
  }
  payload_.clear();
  head_.clear();
  in_payload_ = false;
}

}  // namespace osb::proxy
