// FramedBody: the body of one message on a socket, for requests a server reads and responses a client reads.
#pragma once
#include "http/body_decoder.h"
#include "http/http.h"
#include "http/socket.h"

namespace osb::http {

class FramedBody final : public BodyReader {
 public:
  explicit FramedBody(Socket& socket) : socket_(socket) {}

  // Starts the body of the next message. With `owes_continue` the first read that has to wait asks the client for it.
  void start(Framing framing, bool owes_continue);
  void withdraw_continue() { owes_continue_ = false; }

  std::optional<std::uint64_t> content_length() const override;
  bool done() const override { return decoder_.done(); }
  Task<Result<std::size_t>> read_some(std::span<char> into) override;

  // Whether the rest of the body can be read away within `limit` bytes, as far as is known.
  bool may_drain(std::size_t limit) const;
  // Reads and drops at most `limit` further bytes; true when the body has ended.
  Task<bool> drain(std::size_t limit);

 private:
  Result<std::size_t> decode_pending(std::span<char> into);
  Result<std::size_t> decode_in_place(std::span<char> into, std::size_t size);
  Result<std::size_t> outcome(std::size_t produced) const;

  Socket& socket_;
  BodyDecoder decoder_;
  bool owes_continue_ = false;
};

}  // namespace osb::http
