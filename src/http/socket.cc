#include "http/socket.h"

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace osb::http {
namespace {

// So many calls in a row may finish without giving other connections a turn.
constexpr unsigned kTurns = 32;
constexpr std::size_t kFileStep = 256 * 1024;  // of a file in one call

Error gone(const char* doing, int sys) {
  return sys == 0 ? Error(Errc::unavailable, std::string(doing) + ": the connection is closed")
                  : Error::from_errno(doing, sys, Errc::unavailable);
}

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Socket::Socket(Executor executor, Fd fd) : socket_(executor), timer_(executor) {
  boost::system::error_code error;
  // The family is for addresses, which nobody asks Asio for.
  socket_.assign(asio::generic::stream_protocol(AF_UNIX, 0), fd.get(), error);
  if (error) {
    closed_ = true;  // the descriptor stays with `fd`, which closes it
  } else {
    (void)fd.release();
  }
}

Socket::~Socket() {
  if (alive_) *alive_ = nullptr;
}

// ---- waiting ----------------------------------------------------------------------------------------

Task<Result<>> Socket::wait(Direction& direction, asio::socket_base::wait_type type) {
  for (;;) {
    if (closed_) co_return gone("wait", 0);
    auto stalls = direction.stall.count() > 0 ? Clock::now() + direction.stall : Clock::time_point::max();
    direction.expires = std::min(stalls, direction.limit);
    direction.expired = false;
    direction.waiting = true;
    arm(direction.expires);
    turns_ = 0;
    auto sweeps = sweeps_;
    auto [error] = co_await socket_.async_wait(type, nothrow);
    direction.waiting = false;
    if (!error) co_return Ok{};
    if (direction.expired) co_return Error(Errc::timeout, "the peer did not answer in time");
    auto state = co_await asio::this_coro::cancellation_state;
    bool cancelled = state.cancelled() != asio::cancellation_type::none;
    // Only the other direction's deadline ended this wait: wait again.
    if (!closed_ && !cancelled && sweeps != sweeps_) continue;
    co_return gone("wait", 0);
  }
}

Task<Result<>> Socket::wait_readable() { return wait(read_, asio::socket_base::wait_read); }
Task<Result<>> Socket::wait_writable() { return wait(write_, asio::socket_base::wait_write); }

Task<void> Socket::wait_error() {
  if (closed_) co_return;
  co_await socket_.async_wait(asio::socket_base::wait_error, nothrow);
}

void Socket::arm(Clock::time_point at) {
  if (at >= armed_) return;
  if (!alive_) alive_ = std::make_shared<Socket*>(this);
  armed_ = at;
  timer_.expires_at(at);
  timer_.async_wait([alive = alive_](boost::system::error_code error) {
    if (!error && *alive) (*alive)->on_timer();
  });
}

void Socket::on_timer() {
  armed_ = Clock::time_point::max();
  auto now = Clock::now();
  auto next = Clock::time_point::max();
  bool read_expired = settle(read_, now, next);
  bool write_expired = settle(write_, now, next);
  if (read_expired || write_expired) {
    ++sweeps_;
    boost::system::error_code ignored;
    socket_.cancel(ignored);
  }
  arm(next);
}

bool Socket::settle(Direction& direction, Clock::time_point now, Clock::time_point& next) {
  if (!direction.waiting) return false;
  if (direction.expires <= now) return direction.expired = true;
  next = std::min(next, direction.expires);
  return false;
}

void Socket::set_deadline(Clock::duration from_now) { read_.stall = write_.stall = from_now; }

void Socket::clear_deadline() {
  read_.stall = write_.stall = {};
  read_.limit = write_.limit = Clock::time_point::max();
}

bool Socket::take_turn() { return ++turns_ % kTurns == 0; }

// ---- reading ----------------------------------------------------------------------------------------

Result<std::optional<std::size_t>> Socket::try_read(std::span<char> into) {
  if (closed_) return gone("read", 0);
  for (;;) {
    auto got = ::recv(socket_.native_handle(), into.data(), into.size(), MSG_DONTWAIT);
    if (got >= 0) {
      drained_ = static_cast<std::size_t>(got) < into.size();
      return std::optional(static_cast<std::size_t>(got));
    }
    if (errno == EINTR) continue;
    if (!would_block(errno)) return gone("read", errno);
    drained_ = true;
    return std::optional<std::size_t>{};
  }
}

Task<Result<std::size_t>> Socket::read_some(std::span<char> into) {
  if (into.empty()) co_return std::size_t{0};
  if (auto ready = pending(); !ready.empty()) {
    auto count = std::min(ready.size(), into.size());
    std::memcpy(into.data(), ready.data(), count);
    consume(count);
    co_return count;
  }
  for (;;) {
    // A read that took all there was is followed by a wait: trying again would only cost a call.
    if (!drained_) {
      CO_TRY(auto got, try_read(into));
      if (got) {
        if (take_turn()) co_await yield_now();
        co_return *got;
      }
    }
    auto ready = co_await wait_readable();
    if (!ready) co_return std::move(ready).error();
    drained_ = false;
  }
}

void Socket::consume(std::size_t count) {
  pending_at_ += count;
  if (pending_at_ < pending_.size()) return;
  pending_at_ = 0;
  std::string().swap(pending_);  // unlike clear() and assignment, this gives the memory back
}

void Socket::unread(std::string_view bytes) {
  if (bytes.empty()) return;
  if (pending_at_ > 0) pending_.erase(0, pending_at_);
  pending_at_ = 0;
  pending_.append(bytes);
}

bool Socket::quiet() const {
  if (closed_ || !pending().empty()) return false;
  char byte = 0;
  auto fd = const_cast<Socket*>(this)->socket_.native_handle();
  auto got = ::recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  return got < 0 && would_block(errno);
}

// ---- writing ----------------------------------------------------------------------------------------

Result<std::size_t> Socket::send_now(const Parts& parts) {
  if (closed_) return gone("write", 0);
  std::array<iovec, std::tuple_size_v<Parts>> vectors;
  for (std::size_t i = 0; i < parts.size(); ++i) vectors[i] = {const_cast<char*>(parts[i].data()), parts[i].size()};
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = vectors.size();
  for (;;) {
    auto sent = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EINTR) continue;
    if (would_block(errno)) return std::size_t{0};
    return gone("write", errno);
  }
}

Task<Result<>> Socket::write_parts(Parts parts) {
  for (;;) {
    CO_TRY(auto sent, send_now(parts));
    std::size_t left = 0;
    for (auto& part : parts) {
      auto count = std::min(sent, part.size());
      part.remove_prefix(count);
      sent -= count;
      left += part.size();
    }
    if (left == 0) {
      if (take_turn()) co_await yield_now();
      co_return Ok{};
    }
    auto ready = co_await wait_writable();
    if (!ready) co_return std::move(ready).error();
  }
}

void Socket::expect_bulk() {
  int domain = 0;
  socklen_t size = sizeof domain;
  int bytes = 1 << 20;  // the kernel takes less where its own limit is lower
  if (::getsockopt(native(), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX)
    ::setsockopt(native(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

Task<Result<>> Socket::write_file(int fd, std::uint64_t offset, std::uint64_t length) {
  expect_bulk();
  auto at = static_cast<off_t>(offset);
  while (length > 0) {
    if (closed_) co_return gone("write", 0);
    auto sent = ::sendfile(socket_.native_handle(), fd, &at, static_cast<std::size_t>(std::min<std::uint64_t>(length, kFileStep)));
    if (sent == 0) co_return Error(Errc::unavailable, "the file ends before what was announced");
    if (sent < 0 && errno != EINTR && !would_block(errno)) co_return gone("write", errno);
    if (sent > 0) {
      length -= static_cast<std::uint64_t>(sent);
      if (take_turn()) co_await yield_now();
    } else if (would_block(errno)) {
      auto ready = co_await wait_writable();
      if (!ready) co_return std::move(ready).error();
    }
  }
  co_return Ok{};
}

Task<Result<>> Socket::write_all(std::string_view bytes) { return write_parts(Parts{bytes}); }

void Socket::shutdown_write() noexcept {
  if (!closed_) ::shutdown(socket_.native_handle(), SHUT_WR);
}

void Socket::close() noexcept {
  if (std::exchange(closed_, true)) return;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace osb::http
