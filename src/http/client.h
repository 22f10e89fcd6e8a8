// Client: one connection to one server. What answers may be hostile (it runs in a sandbox), so response heads pass
// the same gate as requests, and a response that two readers could understand differently is an error.
#pragma once
#include <string>

#include "http/framed_body.h"
#include "http/gate.h"
#include "http/head.h"
#include "http/http.h"
#include "http/socket.h"

namespace osb::http {

class Client final : public ClientConnection {
 public:
  // `fd` is connected, or will be before the first start(); `host` goes into Host where a request names none.
  Client(Executor executor, Fd fd, std::string host);

  Task<Result<Head>> start(ClientRequest request) override;
  BodyReader& body() override { return body_; }
  bool reusable() const override;
  Stream& stream() override { return socket_; }
  Socket& socket() { return socket_; }
  void close() noexcept override { socket_.close(); }

  // No wait of this connection goes past `moment`.
  void limit_to(Socket::Clock::time_point moment);

 private:
  Result<bool> render(std::string& out, const ClientRequest& request) const;
  Task<Result<bool>> stream_body(BodyReader& source, bool chunked);
  Task<Result<Head>> receive();
  Task<Result<Head>> receive_one();
  Result<bool> intake();
  Result<bool> digest(Head& head);

  Socket socket_;
  FramedBody body_;
  Gate gate_;
  std::string host_;
  std::string method_;
  MessageInfo info_;
  bool used_ = false;
  bool sound_ = false;  // the last exchange leaves the connection fit for another
  bool upgrading_ = false;
};

}  // namespace osb::http
