// One GET and its answer. The head passes the same gate and parser as everything else that speaks HTTP to us; the body
// is handed out in pieces and ends where the framing says, or the read fails.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/body_decoder.h"
#include "http/http.h"
#include "image/registry/connection.h"

namespace osb::image::registry {

class Exchange {
 public:
  // Preconditions: the connection is fresh; it ends with the exchange.
  static Result<std::unique_ptr<Exchange>> get(std::unique_ptr<Connection> connection, const Url& url, const http::Headers& headers);

  int status() const { return head_.status; }
  const http::Headers& headers() const { return head_.headers; }
  Reach reach() const { return connection_->reach(); }
  // nullopt: the server does not say.
  std::optional<std::uint64_t> content_length() const;

  Result<std::size_t> read(std::span<char> into);   // 0 = the whole body was read
  Result<std::string> read_all(std::size_t limit);  // Errc::too_large past it

 private:
  explicit Exchange(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
  Result<> receive_head();
  Result<bool> fill();

  std::unique_ptr<Connection> connection_;
  http::ClientConnection::Head head_;
  http::BodyDecoder body_;
  std::string pending_;  // read from the connection, not yet looked at
  std::size_t pending_at_ = 0;
};

}  // namespace osb::image::registry
