// How a call ended, in the words of gRPC: the one switch from Errc to a gRPC status.
//
// The stable code of the REST door (SESSION::NOT_FOUND), the field at fault and the advice travel in a google.rpc.ErrorInfo
// (domain "opensandbox"; reason = code; metadata field, advice, retry_after_seconds) and, for clients that do not look into
// details, in the trailers opensandbox-error-code and opensandbox-error-field.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace osb::api::rpc {

enum class Code : std::uint8_t {
  ok = 0,
  cancelled = 1,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  unauthenticated = 16,
};

struct Status {
  Code code = Code::ok;
  std::string message;
  std::string reason;  // stable code
  std::string field;
  std::string advice;
  int retry_after_seconds = 0;
};

Code code_of(Errc kind);
// Words for a remote reader; a failure of ours says only that it is one.
Status to_status(const Error& error);

// grpc-status, grpc-message, grpc-status-details-bin and ours, ready to be sent as trailers.
std::vector<std::pair<std::string, std::string>> trailers(const Status& status);

// The error of a Connect answer, {"code":"not_found","message":..,"details":[..]}, and the HTTP status of a unary one.
std::string connect_error(const Status& status);
int connect_http_status(Code code);

}  // namespace osb::api::rpc
