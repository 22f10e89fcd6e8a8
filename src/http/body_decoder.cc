#include "http/body_decoder.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace osb::http {
namespace {

constexpr std::size_t kSizeDigits = 15;  // below 2^60, so that sums cannot overflow
constexpr std::size_t kChunkExtensionBytes = 256;
constexpr std::size_t kExtensionBytes = 16 * 1024;
constexpr std::size_t kTrailerBytes = 8 * 1024;

int hex_value(unsigned char c) {
  if (c >= '0' && c <= '9') return c - '0';
  auto l = static_cast<unsigned char>(c | 0x20);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

bool is_text(unsigned char c) { return c == '\t' || (c >= 0x20 && c != 0x7f); }

}  // namespace

BodyDecoder::BodyDecoder(Framing framing) : framing_(framing) {
  switch (framing.kind) {
    case Framing::Kind::none: break;
    case Framing::Kind::length:
      left_ = framing.length;
      state_ = left_ > 0 ? State::plain : State::done;
      break;
    case Framing::Kind::chunked: state_ = State::size; break;
    case Framing::Kind::until_close:
      left_ = UINT64_MAX;
      state_ = State::plain;
      break;
  }
}

std::uint64_t BodyDecoder::plain_bytes() const noexcept {
  return state_ == State::plain && framing_.kind != Framing::Kind::chunked ? left_ : 0;
}

BodyDecoder::Step BodyDecoder::decode(std::string_view in, char* out, std::size_t capacity) {
  Step step_done;
  while (step_done.consumed < in.size() && !done() && !failed()) {
    if (state_ != State::plain) {
      step(static_cast<unsigned char>(in[step_done.consumed++]));
      continue;
    }
    auto room = std::min(in.size() - step_done.consumed, capacity - step_done.produced);
    auto count = static_cast<std::size_t>(std::min<std::uint64_t>(room, left_));
    if (count == 0) break;
    std::memmove(out + step_done.produced, in.data() + step_done.consumed, count);
    step_done.consumed += count;
    step_done.produced += count;
    if (framing_.kind == Framing::Kind::until_close) continue;
    left_ -= count;
    if (left_ == 0) state_ = framing_.kind == Framing::Kind::chunked ? State::data_cr : State::done;
  }
  return step_done;
}

void BodyDecoder::end_of_stream() {
  if (done() || failed()) return;
  if (framing_.kind == Framing::Kind::until_close) {
    state_ = State::done;
  } else {
    truncated_ = true;
    fail("the connection ended inside a body");
  }
}

void BodyDecoder::step(unsigned char c) {
  switch (state_) {
    case State::size: start_size(c); break;
    case State::size_more: more_size(c); break;
    case State::extension: in_extension(c); break;
    case State::size_end: end_size(c); break;
    case State::data_cr: c == '\r' ? void(state_ = State::data_lf) : fail("a chunk is longer than its size"); break;
    case State::data_lf: c == '\n' ? void(state_ = State::size) : fail("a chunk does not end with CRLF"); break;
    case State::trailer_start: c == '\r' ? void(state_ = State::end_lf) : in_trailer(c); break;
    case State::trailer: in_trailer(c); break;
    case State::trailer_end: c == '\n' ? void(state_ = State::trailer_start) : fail("a trailer line does not end with CRLF"); break;
    case State::end_lf: c == '\n' ? void(state_ = State::done) : fail("the chunked body does not end with CRLF"); break;
    case State::plain:
    case State::done:
    case State::failed: break;
  }
}

void BodyDecoder::start_size(unsigned char c) {
  int value = hex_value(c);
  if (value < 0) return fail("a chunk size is not hexadecimal");
  left_ = static_cast<std::uint64_t>(value);
  digits_ = 1;
  chunk_extension_ = 0;
  state_ = State::size_more;
}

void BodyDecoder::more_size(unsigned char c) {
  if (c == '\r') return void(state_ = State::size_end);
  if (c == ';') return in_extension(c);
  int value = hex_value(c);
  if (value < 0) return fail("a chunk size is not hexadecimal");
  if (++digits_ > kSizeDigits) return fail("a chunk size is too large");
  left_ = left_ * 16 + static_cast<std::uint64_t>(value);
}

void BodyDecoder::in_extension(unsigned char c) {
  state_ = State::extension;
  if (c == '\r') return void(state_ = State::size_end);
  if (!is_text(c)) return fail("a chunk extension has a control character");
  if (++chunk_extension_ > kChunkExtensionBytes || ++extensions_ > kExtensionBytes) fail("chunk extensions are too long");
}

void BodyDecoder::end_size(unsigned char c) {
  if (c != '\n') return fail("a chunk size line does not end with CRLF");
  state_ = left_ > 0 ? State::plain : State::trailer_start;
}

void BodyDecoder::in_trailer(unsigned char c) {
  state_ = State::trailer;
  if (c == '\r') return void(state_ = State::trailer_end);
  if (!is_text(c)) return fail("a trailer has a control character");
  if (++trailers_ > kTrailerBytes) fail("trailers are too long");
}

void BodyDecoder::fail(std::string_view problem) {
  state_ = State::failed;
  problem_ = problem;
}

}  // namespace osb::http
