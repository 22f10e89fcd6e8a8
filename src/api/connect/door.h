// Connect and gRPC-Web for the session service, on HTTP/1.1: POST /opensandbox.session.v1.SessionService/Method.
//
// Who the caller is, which Host and Origin are taken and how many requests may run side by side is decided by whoever owns
// the listener: the same for these paths as for REST. Here a request is read, the method called, its answer framed.
#pragma once
#include <functional>

#include "api/connect/protocol.h"
#include "api/rpc/call.h"
#include "api/rpc/status.h"
#include "http/http.h"

namespace osb::api::connect {

// Whether a path belongs here: that of the service, with or without a method behind it.
bool is_rpc_path(std::string_view path);

// Answers one request of a caller who is known. `headers` go into every answer (those of a cross-origin request).
Task<void> serve(session::Service& service, Caller caller, http::Request& request, http::Responder& responder, http::Headers headers);
// Says no in the words of the request's protocol: for callers that are not let in.
Task<void> refuse(const Error& error, const http::Request& request, http::Responder& responder, http::Headers headers);

// A call that the gRPC program (src/grpc_door) passes on: an upgraded connection, envelopes both ways, the last one from here
// holds the trailers. Its closing before that is a cancelled call.
inline constexpr std::string_view kRelayProtocol = "opensandbox-grpc";
Task<void> serve_relay(session::Service& service, Result<Caller> caller, http::Request& request, http::Responder& responder);

}  // namespace osb::api::connect
