// Session: one connection of a server, from accept to close. Requests are answered one after the other.
//
// A message the gate or the parser refuses is answered once and ends the connection: bytes behind it are never
// looked at as a request.
#pragma once
#include <string>

#include "http/framed_body.h"
#include "http/gate.h"
#include "http/head.h"
#include "http/http.h"
#include "http/socket.h"

namespace osb::http {

class Session final : public Responder {
 public:
  // `limits` and `handler` belong to the server, which outlives its sessions.
  Session(Executor executor, Fd fd, std::string peer, std::optional<std::uint32_t> peer_uid, const Limits& limits, const Handler& handler);

  Task<void> run();
  // No further request: an idle connection closes now, a busy one after its response.
  void retire();

  Task<Result<>> send(Response response) override;
  Task<Result<>> begin(int status, Headers headers, std::string_view first) override;
  Task<Result<>> chunk(std::string_view bytes) override;
  Task<Result<>> end() override;
  Task<Result<>> send_file(int fd, std::uint64_t offset, std::uint64_t length) override;
  Task<Result<Stream*>> upgrade(int status, Headers headers) override;
  bool started() const override { return phase_ != Phase::fresh; }
  Task<void> closed() override;

 private:
  enum class Phase { fresh, streaming, finished, upgraded };
  enum class Progress { more, complete, refused, gone };

  Task<bool> receive();
  Progress intake();
  Progress digest(std::string_view bytes);
  void begin_request();
  Task<void> refuse(Refusal refusal);
  Task<void> answer();
  Task<void> answer_failure(std::string reason);
  Task<bool> settle();
  Task<void> part();

  std::optional<std::size_t> take(bool keep);

  void choose_persistence(const Headers& headers);
  bool render(std::string& out, const Response& response) const;
  bool render_streamed(std::string& out, int status, const Headers& headers);
  Task<Result<>> replace_response();

  const Limits& limits_;
  const Handler& handler_;
  Socket socket_;
  FramedBody body_;
  Gate gate_;
  Request request_;
  MessageInfo info_;
  Refusal refusal_;
  std::optional<std::uint64_t> left_;  // of a streamed response with Content-Length
  Phase phase_ = Phase::fresh;
  bool busy_ = false;  // a request is being received or answered
  bool retiring_ = false;
  bool peer_gone_ = false;
  bool keep_alive_ = false;
  bool head_only_ = false;
  bool chunked_ = false;
};

}  // namespace osb::http
