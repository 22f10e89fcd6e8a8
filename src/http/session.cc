#include "http/session.h"

#include <array>

#include "base/log.h"
#include "http/head_writer.h"

namespace osb::http {
namespace {

#ifdef OSB_MIN
constexpr std::size_t kReadBytes = 4 * 1024;  // execd counts every page of its stack
#else
constexpr std::size_t kReadBytes = 16 * 1024;
#endif
constexpr std::size_t kIdleFields = 32;
constexpr std::size_t kIdleTarget = 512;
constexpr std::size_t kDrainBytes = 64 * 1024;
constexpr auto kDrainTime = std::chrono::seconds(5);
// Clients that write their whole body before they read an answer still get the refusal, up to this much of it.
constexpr std::size_t kPartingBytes = 4 * 1024 * 1024;
constexpr auto kPartingTime = std::chrono::seconds(3);

}  // namespace

Session::Session(Executor executor, Fd fd, std::string peer, std::optional<std::uint32_t> peer_uid, const Limits& limits,
                 const Handler& handler)
    : limits_(limits), handler_(handler), socket_(executor, std::move(fd)), body_(socket_), gate_(gate_limits(limits)) {
  request_.peer = std::move(peer);
  request_.peer_uid = peer_uid;
  request_.body = &body_;
}

Task<void> Session::run() {
  for (;;) {
    bool received = co_await receive();
    if (!received) break;
    co_await answer();
    bool again = co_await settle();
    if (!again) break;
    busy_ = false;
  }
  co_await part();
}

void Session::retire() {
  retiring_ = true;
  if (!busy_) socket_.close();
}

// ---- receiving --------------------------------------------------------------------------------------

void Session::begin_request() {
  gate_.reset();
  request_.headers.clear();
  // What an idle connection keeps is small, whatever its last request was.
  if (request_.headers.fields().capacity() > kIdleFields) request_.headers = {};
  if (request_.target.capacity() > kIdleTarget)
    for (auto* text : {&request_.target, &request_.path, &request_.query}) std::string().swap(*text);
  request_.request_id.clear();
  info_ = {};
  phase_ = Phase::fresh;
  left_.reset();
  head_only_ = chunked_ = false;
}

// True when request_ holds a request to answer; false when the connection is to end.
Task<bool> Session::receive() {
  begin_request();
  socket_.set_read_stall(limits_.idle_deadline);
  socket_.set_read_limit(Socket::Clock::time_point::max());
  auto progress = socket_.pending().empty() ? Progress::more : digest({});
  while (progress == Progress::more) {
    if (retiring_ && !busy_) co_return false;
    // The whole head shares one deadline from its first byte on: dripping bytes does not move it.
    if (!busy_ && !socket_.pending().empty()) {
      busy_ = true;
      socket_.set_read_limit(Socket::Clock::now() + limits_.header_deadline);
    }
    auto ready = co_await socket_.wait_readable();
    if (ready) {
      progress = intake();
    } else if (busy_ && ready.error().kind() == Errc::timeout) {
      refusal_ = {408, "REQUEST_TIMEOUT", "the request head did not arrive in time"};
      progress = Progress::refused;
    } else {
      progress = Progress::gone;
    }
  }
  busy_ = true;
  if (progress == Progress::refused) co_await refuse(refusal_);
  co_return progress == Progress::complete;
}

// Reads what is there. The buffer is on the stack: a head that arrives whole is never copied to the heap.
Session::Progress Session::intake() {
  std::array<char, kReadBytes> scratch;
  auto got = socket_.try_read(scratch);
  if (!got) return Progress::gone;
  if (!*got) return Progress::more;
  if (**got == 0) return Progress::gone;
  return digest(std::string_view(scratch.data(), **got));
}

// Looks at pending bytes followed by `bytes`; keeps what is not part of the head for later.
Session::Progress Session::digest(std::string_view bytes) {
  bool fresh = socket_.pending().empty();
  if (!fresh) {
    socket_.unread(bytes);
    bytes = socket_.pending();
  }
  refusal_ = gate_.scan(bytes);
  if (!refusal_ && gate_.done()) refusal_ = parse_request_head(bytes.substr(0, gate_.head_bytes()), limits_, request_, info_);
  if (refusal_) return Progress::refused;
  if (fresh) socket_.unread(gate_.done() ? bytes.substr(gate_.head_bytes()) : bytes);
  if (!gate_.done()) return Progress::more;
  if (!fresh) socket_.consume(gate_.head_bytes());
  return Progress::complete;
}

Task<void> Session::refuse(Refusal refusal) {
  keep_alive_ = false;
  if (request_.request_id.empty()) request_.request_id = new_request_id();
  socket_.set_write_stall(kPartingTime);
  auto sent = co_await send(Response::json(refusal.status, error_json(refusal.code, refusal.message)));
  if (!sent) socket_.close();
}

// ---- answering --------------------------------------------------------------------------------------

Task<void> Session::answer() {
  keep_alive_ = info_.keep_alive && !retiring_;
  head_only_ = request_.method == "HEAD";
  body_.start(info_.framing, info_.expect_continue);
  socket_.set_read_limit(Socket::Clock::time_point::max());
  socket_.set_read_stall(limits_.body_stall_deadline);
  socket_.set_write_stall(limits_.write_stall_deadline);
  std::string failure;
  try {
    co_await handler_(request_, *this);
  } catch (const std::exception& e) {
    failure = e.what();
  } catch (...) {
    failure = "unknown exception";
  }
  auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) {
    keep_alive_ = false;
    socket_.close();
    co_return;
  }
  if (failure.empty() && phase_ == Phase::fresh && !peer_gone_) failure = "the handler sent no response";
  if (!failure.empty()) co_await answer_failure(std::move(failure));
}

Task<void> Session::answer_failure(std::string reason) {
  log::error("request failed",
             {{"request_id", request_.request_id}, {"method", request_.method}, {"path", request_.path}, {"error", reason}});
  if (phase_ != Phase::fresh) {
    keep_alive_ = false;
    co_return;
  }
  auto response = Response::json(500, error_json("GENERAL::UNKNOWN_ERROR", "the server failed to answer this request"));
  auto sent = co_await send(std::move(response));
  if (!sent) keep_alive_ = false;
}

// True when the next request may follow on this connection.
Task<bool> Session::settle() {
  // A streamed response that was not ended is cut off visibly, by closing before its terminator.
  if (phase_ != Phase::finished || !keep_alive_ || socket_.closed()) co_return false;
  if (body_.done()) co_return true;
  socket_.set_read_limit(Socket::Clock::now() + kDrainTime);
  bool drained = co_await body_.drain(kDrainBytes);
  co_return drained;
}

// Closing with unread bytes in the socket would reset the connection and could take the response with it.
Task<void> Session::part() {
  bool more_may_come = refusal_ || !body_.done() || !socket_.pending().empty();
  if (socket_.closed() || phase_ != Phase::finished || !more_may_come) {
    socket_.close();
    co_return;
  }
  busy_ = false;
  socket_.shutdown_write();
  socket_.consume(socket_.pending().size());
  socket_.set_read_limit(Socket::Clock::now() + kPartingTime);
  std::size_t dropped = 0;
  while (dropped < kPartingBytes) {
    auto ready = co_await socket_.wait_readable();
    if (!ready) break;
    auto got = take(false);
    if (!got) break;
    dropped += *got;
  }
  socket_.close();
}

// The client is gone when its side ends. Bytes of a next request are kept, within bounds.
Task<void> Session::closed() {
  socket_.set_read_stall({});
  while (body_.done() && socket_.pending().size() < kReadBytes) {
    auto ready = co_await socket_.wait_readable();
    if (!ready) co_return;
    auto got = take(true);
    if (got) continue;
    peer_gone_ = true;
    keep_alive_ = false;
    co_return;
  }
  co_await socket_.wait_error();
}

// Reads what is there and keeps or drops it; nullopt at the end of the stream.
std::optional<std::size_t> Session::take(bool keep) {
  std::array<char, kReadBytes> scratch;
  auto got = socket_.try_read(scratch);
  if (!got || (*got && **got == 0)) return std::nullopt;
  auto count = got->value_or(0);
  if (keep) socket_.unread(std::string_view(scratch.data(), count));
  return count;
}

}  // namespace osb::http
