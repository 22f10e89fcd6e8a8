// Plain answers of execd: errors as {"code","message"}, success without a body.
#pragma once
#include <string>
#include <string_view>

#include "http/http.h"

namespace osb::execd {

inline constexpr std::size_t kMaxBody = 1024 * 1024;

// Nothing can be done about a client that is gone, so nothing is returned.
Task<void> reply_error(http::Responder& responder, int status, std::string code, std::string message);
Task<void> reply(http::Responder& responder, http::Response response);
Task<void> reply_json(http::Responder& responder, int status, std::string body);
Task<void> reply_empty(http::Responder& responder);
// INVALID_REQUEST_BODY with 400, or 413 when it is a matter of size.
Task<void> reply_bad_request(http::Responder& responder, Error error);

}  // namespace osb::execd
