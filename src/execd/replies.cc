#include "execd/replies.h"

#include "base/text.h"

namespace osb::execd {

Task<void> reply_error(http::Responder& responder, int status, std::string code, std::string message) {
  std::string body = "{\"code\":";
  append_json_string(body, code);
  body += ",\"message\":";
  append_json_string(body, message);
  body += "}";
  auto response = http::Response::json(status, std::move(body));
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
}

Task<void> reply_empty(http::Responder& responder) {
  auto response = http::Response::empty(200);
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
}

Task<void> reply_bad_request(http::Responder& responder, Error error) {
  int status = error.kind() == Errc::too_large ? 413 : 400;
  co_await reply_error(responder, status, "INVALID_REQUEST_BODY", error.what());
}

}  // namespace osb::execd
