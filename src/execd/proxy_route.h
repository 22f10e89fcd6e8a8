// ANY /proxy/{port}/...: services of the sandbox on 127.0.0.1, plain HTTP and upgraded connections.
#pragma once
#include <cstdint>
#include <string>

#include "http/http.h"

namespace osb::execd {

// `target` is the raw path and query behind /proxy/{port}, beginning with '/'.
Task<void> forward_to_port(std::uint16_t port, std::string target, http::Request& request, http::Responder& responder);

}  // namespace osb::execd
