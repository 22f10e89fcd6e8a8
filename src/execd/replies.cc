#include "execd/replies.h"

#include "base/text.h"

namespace osb::execd {

Task<void> reply(http::Responder& responder, http::Response response) {
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
}

Task<void> reply_json(http::Responder& responder, int status, std::string body) {
  return reply(responder, http::Response::json(status, std::move(body)));
}

Task<void> reply_error(http::Responder& responder, int status, std::string code, std::string message) {
  std::string body = "{\"code\":";
  append_json_string(body, code);
  body += ",\"message\":";
  append_json_string(body, message);
  body += "}";
  return reply_json(responder, status, std::move(body));
}

Task<void> reply_empty(http::Responder& responder) { return reply(responder, http::Response::empty(200)); }

Task<void> reply_bad_request(http::Responder& responder, Error error) {
  int status = error.kind() == Errc::too_large ? 413 : 400;
  return reply_error(responder, status, "INVALID_REQUEST_BODY", error.what());
}

}  // namespace osb::execd
