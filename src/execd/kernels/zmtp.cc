#include "execd/kernels/zmtp.h"

#include <algorithm>

#include "base/text.h"
#include "execd/output_pipe.h"

namespace osb::execd::zmtp {
namespace {

constexpr unsigned kMore = 1;
constexpr unsigned kLong = 2;
constexpr unsigned kCommand = 4;
constexpr std::size_t kGreeting = 64;
constexpr unsigned kReadsInARow = 16;

Error malformed(std::string_view what) { return Error(Errc::malformed, cat("ZMTP: ", what)); }

std::string greeting() {
  std::string out("\xff\0\0\0\0\0\0\0\0\x7f\3\0NULL", 16);
  out.resize(kGreeting);
  return out;
}

void append_size(std::string& out, std::uint64_t size, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(size >> shift);
}

void append_frame(std::string& out, unsigned flags, std::string_view payload) {
  bool is_long = payload.size() > 255;
  out += static_cast<char>(is_long ? flags | kLong : flags);
  append_size(out, payload.size(), is_long ? 8 : 1);
  out += payload;
}

std::string ready(Type type) {
  std::string_view name = type == Type::dealer ? "DEALER" : "SUB";
  std::string command("\5READY\x0bSocket-Type", 18);
  append_size(command, name.size(), 4);
  command += name;
  std::string out;
  append_frame(out, kCommand, command);
  return out;
}

bool named(std::string_view command, std::string_view name) {
  return command.size() > name.size() && static_cast<std::size_t>(command.front()) == name.size() && command.substr(1).starts_with(name);
}

}  // namespace

Task<Result<std::unique_ptr<Peer>>> Peer::connect(http::Target target, Type type, Clock::duration deadline) {
  auto until = Clock::now() + deadline;
  CO_TRY(auto socket, co_await http::dial(std::move(target), deadline));
  socket->set_read_limit(until);
  socket->set_write_limit(until);
  std::unique_ptr<Peer> peer(new Peer(std::move(socket)));
  auto greeted = co_await peer->greet(type);
  if (!greeted) co_return std::move(greeted).error();
  peer->socket_->clear_deadline();
  // A peer that reads nothing for this long has lost its senses; what waits behind it should be told.
  peer->socket_->set_write_stall(std::chrono::seconds(30));
  co_return peer;
}

Task<Result<>> Peer::greet(Type type) {
  auto sent = co_await socket_->write_all(greeting());
  if (!sent) co_return sent;
  CO_TRY(std::string theirs, co_await take(kGreeting));
  if (theirs[0] != '\xff' || theirs[9] != '\x7f' || theirs[10] < 3) co_return malformed("the peer does not greet as version 3");
  if (std::string_view(theirs).substr(12, 20) != std::string_view(greeting()).substr(12, 20))
    co_return malformed("the peer wants another security mechanism than NULL");
  std::string out = ready(type);
  // "\1" and nothing behind it: messages on every topic.
  if (type == Type::sub) append_frame(out, 0, std::string_view("\1", 1));
  sent = co_await socket_->write_all(out);
  if (!sent) co_return sent;
  CO_TRY(Frame head, co_await frame_head());
  if ((head.flags & kCommand) == 0 || head.size > kMaxCommand) co_return malformed("the peer is not ready");
  CO_TRY(std::string command, co_await take(static_cast<std::size_t>(head.size)));
  if (!named(command, "READY")) co_return malformed("the peer refuses the connection");
  co_return Ok{};
}

void Peer::consume(std::size_t count) {
  at_ += count;
  if (at_ < in_.size()) return;
  std::string().swap(in_);  // an idle connection holds no buffer
  at_ = 0;
}

Task<Result<>> Peer::fill() {
  in_.erase(0, at_);
  at_ = 0;
  for (;;) {
    CO_TRY(auto got, socket_->try_read(scratch()));
    if (got && *got == 0) co_return Error(Errc::unavailable, "the peer has gone");
    if (got) {
      in_.append(scratch().data(), *got);
      if (++reads_ % kReadsInARow == 0) co_await yield_now();
      co_return Ok{};
    }
    auto ready = co_await socket_->wait_readable();
    if (!ready) co_return ready;
  }
}

Task<Result<>> Peer::need(std::size_t count) {
  while (ahead().size() < count) {
    auto more = co_await fill();
    if (!more) co_return more;
  }
  co_return Ok{};
}

Task<Result<std::string>> Peer::take(std::size_t count) {
  std::string out;
  for (;;) {
    std::size_t part = std::min(count - out.size(), ahead().size());
    out += ahead().substr(0, part);
    consume(part);
    if (out.size() == count) co_return out;
    auto more = co_await fill();
    if (!more) co_return std::move(more).error();
  }
}

Task<Result<>> Peer::drop(std::uint64_t count) {
  for (;;) {
    auto part = static_cast<std::size_t>(std::min<std::uint64_t>(count, ahead().size()));
    consume(part);
    count -= part;
    if (count == 0) co_return Ok{};
    auto more = co_await fill();
    if (!more) co_return more;
  }
}

Task<Result<Peer::Frame>> Peer::frame_head() {
  auto there = co_await need(2);
  if (!there) co_return std::move(there).error();
  Frame frame{.flags = static_cast<unsigned char>(ahead()[0])};
  if (frame.flags > (kMore | kLong | kCommand)) co_return malformed("a frame with unknown flags");
  std::size_t bytes = (frame.flags & kLong) != 0 ? 8 : 1;
  there = co_await need(1 + bytes);
  if (!there) co_return std::move(there).error();
  for (char byte : ahead().substr(1, bytes)) frame.size = frame.size << 8 | static_cast<unsigned char>(byte);
  consume(1 + bytes);
  if (frame.size > kMaxFrame) co_return malformed("a frame larger than 4 GiB");
  co_return frame;
}

Task<Result<>> Peer::answer_command(std::string command) {
  if (!named(command, "PING")) co_return Ok{};
  // "\4PING", two bytes of time to live, up to 16 bytes that go back.
  std::string pong("\4PONG", 5);
  if (command.size() > 7) pong += std::string_view(command).substr(7, 16);
  std::string out;
  append_frame(out, kCommand, pong);
  co_return co_await socket_->write_all(out);
}

Task<Result<>> Peer::send(std::vector<std::string> frames) {
  std::string out;
  for (std::size_t i = 0; i < frames.size(); ++i) append_frame(out, i + 1 < frames.size() ? kMore : 0, frames[i]);
  co_return co_await socket_->write_all(out);
}

Task<Result<Message>> Peer::receive() {
  Message message;
  std::size_t kept = 0;
  for (;;) {
    CO_TRY(Frame head, co_await frame_head());
    if ((head.flags & kCommand) != 0) {
      if (head.size > kMaxCommand) co_return malformed("a command larger than 4 KiB");
      CO_TRY(std::string command, co_await take(static_cast<std::size_t>(head.size)));
      auto answered = co_await answer_command(std::move(command));
      if (!answered) co_return std::move(answered).error();
      continue;
    }
    if (message.frames.size() == kMaxFrames) co_return malformed("a message of more than 64 frames");
    std::string& frame = message.frames.emplace_back();
    if (head.size > kMaxMessage - kept) {
      message.left_out += head.size;
      auto dropped = co_await drop(head.size);
      if (!dropped) co_return std::move(dropped).error();
    } else {
      CO_TRY(frame, co_await take(static_cast<std::size_t>(head.size)));
      kept += frame.size();
    }
    if ((head.flags & kMore) == 0) co_return message;
  }
}

}  // namespace osb::execd::zmtp
