#include "grpc_door/relay.h"

#include <algorithm>

#include "async/task_group.h"
#include "base/log.h"
#include "base/text.h"
#include "http/http.h"

namespace osb::grpc_door {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kProtocol = "opensandbox-grpc";
constexpr std::size_t kHead = 5;
constexpr std::size_t kBlock = 32 * 1024;
constexpr std::uint8_t kEnd = 0x02;
constexpr std::uint8_t kTrailers = 0x80;
// serve keeps its answers to what was asked for (64 MiB of each stream at most); past it something is broken.
constexpr std::size_t kMaxAnswer = 160u << 20;
constexpr auto kConnect = 5s;
constexpr auto kWriteStall = 60s;
constexpr int kUnavailable = 14;
constexpr int kCancelled = 1;

// What serve needs to know of the client's metadata.
constexpr std::string_view kPassed[] = {"open-sandbox-api-key", "x-api-key", "authorization", "x-request-id"};

std::string envelope(std::uint8_t flags, std::string_view bytes) {
  std::string out(1, static_cast<char>(flags));
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(bytes.size() >> shift & 0xFF);
  return out += bytes;
}

bool may_stand_in_a_head(std::string_view value) {
  return value.size() <= 4096 && std::all_of(value.begin(), value.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
}

http::ClientRequest request_of(const Call& call) {
  http::ClientRequest request;
  request.method = "POST";
  request.target = call.path();
  request.headers.add("Connection", "Upgrade");
  request.headers.add("Upgrade", std::string(kProtocol));
  for (const auto& [name, value] : call.metadata()) {
    bool passed = std::find(std::begin(kPassed), std::end(kPassed), name) != std::end(kPassed);
    if (passed && may_stand_in_a_head(value)) request.headers.add(name, value);
  }
  return request;
}

// Paths come from the client and stand in a request line: only what a method's path is made of.
bool is_plain_path(std::string_view path) {
  auto fine = [](char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '/'; };
  return path.size() > 1 && path.size() <= 256 && path[0] == '/' && std::all_of(path.begin(), path.end(), fine);
}

Task<Result<>> pass_messages(Call& call, http::Stream& serve) {
  for (;;) {
    auto message = co_await call.read();
    auto frame = message ? envelope(0, *message) : envelope(kEnd, {});
    auto sent = co_await serve.write_all(frame);
    if (!sent || !message) co_return sent;
  }
}

Task<void> pass_up(Call& call, http::Stream& serve) { [[maybe_unused]] auto done = co_await pass_messages(call, serve); }

Task<void> close_when_cancelled(Call& call, http::ClientConnection& serve) {
  co_await call.cancelled();
  serve.close();
}

struct Frame {
  std::uint8_t flags = 0;
  std::string bytes;
};

class Frames {
 public:
  explicit Frames(http::Stream& stream) : stream_(stream), block_(std::make_unique_for_overwrite<char[]>(kBlock)) {}

  Task<Result<Frame>> next() {
    for (;;) {
      if (pending_.size() >= kHead) {
        std::size_t length = 0;
        for (std::size_t i = 1; i < kHead; ++i) length = length << 8 | static_cast<std::uint8_t>(pending_[i]);
        if (length > kMaxAnswer) co_return Error(Errc::internal, "serve sent a message that is too long");
        if (pending_.size() - kHead >= length) co_return cut(length);
        pending_.reserve(kHead + length);
      }
      auto got = co_await stream_.read_some(std::span(block_.get(), kBlock));
      if (!got) co_return std::move(got).error();
      if (*got == 0) co_return Error(Errc::unavailable, "serve has closed the call");
      pending_.append(block_.get(), *got);
    }
  }

 private:
  Frame cut(std::size_t length) {
    Frame frame{static_cast<std::uint8_t>(pending_[0]), pending_.substr(kHead, length)};
    pending_.erase(0, kHead + length);
    return frame;
  }

  http::Stream& stream_;
  std::unique_ptr<char[]> block_;
  std::string pending_;
};

std::string decode_percent(std::string_view text) { return http::percent_decode(text, false).value_or(std::string(text)); }

std::string decode_base64(std::string_view text) {
  static constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  int have = 0;
  for (char c : text) {
    bits = bits << 6 | static_cast<std::uint32_t>(std::min(kAlphabet.find(c), std::size_t{63}));
    have += 6;
    if (have >= 8) out += static_cast<char>(bits >> (have -= 8) & 0xFF);
  }
  return out;
}

// "name: value" lines become the status and the trailing metadata.
void finish_with(Call& call, std::string_view lines) {
  int code = kUnavailable;
  std::string message, details;
  for (auto line : split(lines, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    auto colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    auto name = line.substr(0, colon);
    auto value = line.substr(colon + 2);
    if (name == "grpc-status") {
      code = parse_int<int>(value).value_or(kUnavailable);
    } else if (name == "grpc-message") {
      message = decode_percent(value);
    } else if (name == "grpc-status-details-bin") {
      details = decode_base64(value);
    } else {
      call.add_trailer(std::string(name), std::string(value));
    }
  }
  call.finish(code, message, details);
}

Task<Result<std::string>> pass_down(Call& call, http::Stream& serve) {
  Frames frames(serve);
  for (;;) {
    CO_TRY(auto frame, co_await frames.next());
    if (frame.flags == kTrailers) co_return std::move(frame.bytes);
    CO_TRY([[maybe_unused]] auto sent, co_await call.write(std::move(frame.bytes), kWriteStall));
  }
}

Task<Result<std::string>> exchange(Call& call, std::string socket_path) {
  auto target = http::Target::unix_socket(std::move(socket_path));
  CO_TRY(auto serve, co_await http::connect(std::move(target), kConnect));
  serve->stream().set_deadline(kConnect);
  CO_TRY(auto head, co_await serve->start(request_of(call)));
  if (head.status != 101) co_return Error(Errc::unavailable, cat("serve answered ", head.status));
  serve->stream().clear_deadline();
  auto executor = co_await asio::this_coro::executor;
  TaskGroup sides(executor);
  sides.spawn("messages", pass_up(call, serve->stream()));
  sides.spawn("cancel", close_when_cancelled(call, *serve));
  auto trailers = co_await pass_down(call, serve->stream());
  serve->close();
  co_await sides.stop();
  co_return trailers;
}

}  // namespace

Task<void> relay(std::shared_ptr<Call> call, std::string socket_path) {
  co_await asio::this_coro::throw_if_cancelled(false);
  if (!is_plain_path(call->path())) co_return call->finish(12, "There is no such method.", {});
  auto trailers = co_await exchange(*call, std::move(socket_path));
  if (trailers) co_return finish_with(*call, *trailers);
  bool slow = trailers.error().kind() == Errc::timeout;
  if (!slow) log::debug("call not passed on", {{"path", call->path()}, {"error", trailers.error().what()}});
  call->finish(slow ? kCancelled : kUnavailable,
               slow ? "The client took no message for a minute." : "The server is not available right now.", {});
}

}  // namespace osb::grpc_door
