// ZMTP 3 (the wire protocol of ZeroMQ) as a client needs it: NULL mechanism, DEALER and SUB, one connection.
//
// The peer is a program of the sandbox and may be hostile: every length is bounded before memory is spent, a frame that
// is not well formed ends the connection, and nothing is reserved for bytes that have not come.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "http/socket.h"

namespace osb::execd::zmtp {

enum class Type { dealer, sub };

struct Message {
  std::vector<std::string> frames;
  std::uint64_t left_out = 0;  // bytes of frames that were too large to keep; such a frame is empty
};

inline constexpr std::size_t kMaxMessage = 16 * 1024 * 1024;  // bytes kept; what is larger is read and dropped
inline constexpr std::uint64_t kMaxFrame = 1ull << 32;        // a frame that says it is larger is no frame
inline constexpr std::size_t kMaxFrames = 64;
inline constexpr std::size_t kMaxCommand = 4096;

class Peer {
 public:
  using Clock = http::Socket::Clock;

  // Connected, greeted and, for SUB, subscribed to everything.
  static Task<Result<std::unique_ptr<Peer>>> connect(http::Target target, Type type, Clock::duration deadline);

  Task<Result<>> send(std::vector<std::string> frames);
  // Waits for as long as it takes; close() ends it. Errc::malformed: the peer does not speak the protocol.
  Task<Result<Message>> receive();
  void close() noexcept { socket_->close(); }

 private:
  struct Frame {
    unsigned flags = 0;
    std::uint64_t size = 0;
  };
  explicit Peer(std::unique_ptr<http::Socket> socket) : socket_(std::move(socket)) {}
  Task<Result<>> greet(Type type);
  std::string_view ahead() const { return std::string_view(in_).substr(at_); }
  void consume(std::size_t count);
  Task<Result<>> fill();                   // more bytes behind those ahead
  Task<Result<>> need(std::size_t count);  // so many bytes ahead
  Task<Result<std::string>> take(std::size_t count);
  Task<Result<>> drop(std::uint64_t count);
  Task<Result<Frame>> frame_head();
  Task<Result<>> answer_command(std::string command);

  std::unique_ptr<http::Socket> socket_;
  std::string in_;  // read; those before at_ are used up
  std::size_t at_ = 0;
  unsigned reads_ = 0;
};

}  // namespace osb::execd::zmtp
