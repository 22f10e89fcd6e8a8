// Socket: a connected stream socket with look-ahead and cheap deadlines.
//
// All waiting is readiness (epoll) plus non-blocking calls, so an idle socket pins no buffer. One timer a socket is
// armed only when a wait really happens and no earlier expiry is pending; on expiry it looks what is due and re-arms itself.
// A wait that timed out can be followed by other reads and writes (a server still wants to say 408).
#pragma once
#include <array>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <memory>

#include "http/http.h"

namespace osb::http {

class Socket final : public Stream {
 public:
  using Clock = std::chrono::steady_clock;

  // `fd` is a stream socket (connected, or about to be) with O_NONBLOCK and CLOEXEC set.
  Socket(Executor executor, Fd fd);
  ~Socket() override;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  Task<Result<std::size_t>> read_some(std::span<char> into) override;
  Task<Result<>> write_all(std::string_view bytes) override;
  void set_deadline(Clock::duration from_now) override;
  void clear_deadline() override;
  void shutdown_write() noexcept override;
  void close() noexcept override;

  // All parts leave in one call to the kernel where it takes them.
  using Parts = std::array<std::string_view, 3>;
  Task<Result<>> write_parts(Parts parts);
  // A long transfer follows. Over a unix socket more in flight means fewer turns of both sides; TCP finds its own size.
  void expect_bulk();
  // Bytes of a file, copied by the kernel.
  Task<Result<>> write_file(int fd, std::uint64_t offset, std::uint64_t length);

  // A read or write that makes no progress for this long fails; zero = no such limit.
  void set_read_stall(Clock::duration stall) { read_.stall = stall; }
  void set_write_stall(Clock::duration stall) { write_.stall = stall; }
  // No read goes past this moment; max() = none.
  void set_read_limit(Clock::time_point limit) { read_.limit = limit; }
  void set_write_limit(Clock::time_point limit) { write_.limit = limit; }

  Task<Result<>> wait_readable();
  Task<Result<>> wait_writable();
  Task<void> wait_error();  // until reset, hung up, closed here or cancelled

  // One recv(2): bytes read, 0 at the end of the stream, nullopt when nothing is there yet. Ignores look-ahead.
  Result<std::optional<std::size_t>> try_read(std::span<char> into);

  // Look-ahead: bytes that were read but belong to whoever reads next.
  std::string_view pending() const noexcept { return std::string_view(pending_).substr(pending_at_); }
  void consume(std::size_t count);
  void unread(std::string_view bytes);  // behind what is pending
  bool quiet() const;                   // open, nothing pending, nothing readable, not ended
  int native() { return socket_.native_handle(); }
  bool closed() const noexcept { return closed_; }

 private:
  struct Direction {
    Clock::duration stall{};
    Clock::time_point limit = Clock::time_point::max();
    Clock::time_point expires = Clock::time_point::max();
    bool waiting = false;
    bool expired = false;
  };
  Task<Result<>> wait(Direction& direction, asio::socket_base::wait_type type);
  Result<std::size_t> send_now(const Parts& parts);
  void arm(Clock::time_point at);
  void on_timer();
  bool settle(Direction& direction, Clock::time_point now, Clock::time_point& next);
  bool take_turn();

  asio::basic_stream_socket<asio::generic::stream_protocol, Executor> socket_;
  Timer timer_;
  std::shared_ptr<Socket*> alive_;  // what a timer handler in the queue may still hold when this socket is gone
  Clock::time_point armed_ = Clock::time_point::max();
  Direction read_;
  Direction write_;
  std::string pending_;
  std::size_t pending_at_ = 0;
  unsigned sweeps_ = 0;   // times the timer cancelled all waits
  unsigned turns_ = 0;    // calls that finished without waiting, since the last wait
  bool drained_ = false;  // the last read took all there was
  bool closed_ = false;
};

// A connected byte stream, for protocols other than HTTP.
Task<Result<std::unique_ptr<Socket>>> dial(Target target, Socket::Clock::duration deadline);

}  // namespace osb::http
