#include "http/framed_body.h"

#include <algorithm>

#include "base/text.h"

namespace osb::http {
namespace {

constexpr std::size_t kReadAllStep = 16 * 1024;
// read_all gives a sender this long, and then at least this rate: a byte now and then must not hold a request for days.
constexpr auto kReadAllPatience = std::chrono::seconds(60);
constexpr std::uint64_t kReadAllBytesPerSecond = 1024;

bool too_slow(Socket::Clock::time_point since, std::size_t received) {
  auto spent = Socket::Clock::now() - since;
  return spent > kReadAllPatience + std::chrono::seconds(received / kReadAllBytesPerSecond);
}

}  // namespace

Task<Result<std::string>> BodyReader::read_all(std::size_t limit) {
  std::string body;
  auto announced = content_length();
  if (announced && *announced > limit) co_return Error(Errc::too_large, cat("the body is larger than ", limit, " bytes"));
  auto since = Socket::Clock::now();
  while (!done()) {
    auto have = body.size();
    // One byte more than can be needed: a body without a length shows with it that it goes past the limit.
    auto most = announced ? static_cast<std::size_t>(*announced) : limit;
    auto step = std::min(kReadAllStep, most - have < kReadAllStep ? most - have + 1 : kReadAllStep);
    body.resize(have + step);
    auto got = co_await read_some(std::span(body.data() + have, step));
    if (!got) co_return std::move(got).error();
    body.resize(have + *got);
    if (*got == 0) break;
    if (body.size() > limit) co_return Error(Errc::too_large, cat("the body is larger than ", limit, " bytes"));
    if (!done() && too_slow(since, body.size())) co_return Error(Errc::timeout, "the body arrives too slowly");
  }
  co_return body;
}

void FramedBody::start(Framing framing, bool owes_continue) {
  decoder_ = BodyDecoder(framing);
  owes_continue_ = owes_continue;
}

std::optional<std::uint64_t> FramedBody::content_length() const {
  switch (decoder_.framing().kind) {
    case Framing::Kind::none: return 0;
    case Framing::Kind::length: return decoder_.framing().length;
    case Framing::Kind::chunked:
    case Framing::Kind::until_close: return std::nullopt;
  }
  return std::nullopt;
}

Task<Result<std::size_t>> FramedBody::read_some(std::span<char> into) {
  while (!decoder_.done() && !decoder_.failed() && !into.empty()) {
    if (!socket_.pending().empty()) {
      auto decoded = decode_pending(into);
      if (!decoded || *decoded > 0) co_return decoded;
      continue;
    }
    if (std::exchange(owes_continue_, false)) {
      auto asked = co_await socket_.write_all("HTTP/1.1 100 Continue\r\n\r\n");
      if (!asked) co_return std::move(asked).error();
    }
    // Never more than the body's own bytes where their number is known, so the next message stays in the socket.
    auto plain = decoder_.plain_bytes();
    auto room = plain > 0 ? into.first(static_cast<std::size_t>(std::min<std::uint64_t>(plain, into.size()))) : into;
    CO_TRY(auto got, co_await socket_.read_some(room));
    auto decoded = decode_in_place(into, got);
    if (!decoded || *decoded > 0) co_return decoded;
  }
  co_return outcome(0);
}

Result<std::size_t> FramedBody::decode_pending(std::span<char> into) {
  auto step = decoder_.decode(socket_.pending(), into.data(), into.size());
  socket_.consume(step.consumed);
  return outcome(step.produced);
}

Result<std::size_t> FramedBody::decode_in_place(std::span<char> into, std::size_t size) {
  if (size == 0) {
    decoder_.end_of_stream();
    return outcome(0);
  }
  auto step = decoder_.decode(std::string_view(into.data(), size), into.data(), into.size());
  socket_.unread(std::string_view(into.data(), size).substr(step.consumed));
  return outcome(step.produced);
}

// Bytes decoded before a failure are delivered first; the failure comes with the next call.
Result<std::size_t> FramedBody::outcome(std::size_t produced) const {
  if (produced > 0 || !decoder_.failed()) return produced;
  return Error(decoder_.truncated() ? Errc::unavailable : Errc::invalid_argument, std::string(decoder_.problem()));
}

bool FramedBody::may_drain(std::size_t limit) const {
  if (decoder_.done()) return true;
  // A client that waits for our word may send the body or not: nothing certain can follow on this connection.
  return !owes_continue_ && !decoder_.failed() && decoder_.plain_bytes() <= limit;
}

Task<bool> FramedBody::drain(std::size_t limit) {
  if (decoder_.done()) co_return true;
  if (!may_drain(limit)) co_return false;
  auto scratch = std::make_unique<char[]>(kReadAllStep);
  while (!decoder_.done()) {
    auto got = co_await read_some(std::span(scratch.get(), kReadAllStep));
    if (!got || *got > limit) co_return false;
    limit -= *got;
    if (*got == 0) break;
  }
  co_return decoder_.done();
}

}  // namespace osb::http
