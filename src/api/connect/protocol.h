// Which of the protocols a request speaks, told by its content type, and what the client allows in time.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "api/rpc/messages.h"
#include "http/http.h"

namespace osb::api::connect {

enum class Kind : std::uint8_t { connect_unary, connect_stream, grpc_web, grpc_web_text };

struct Protocol {
  Kind kind = Kind::connect_unary;
  rpc::Form form = rpc::Form::binary;
  std::string content_type;  // of the answer

  bool framed() const { return kind != Kind::connect_unary; }
  bool web() const { return kind == Kind::grpc_web || kind == Kind::grpc_web_text; }
};

// nullopt: none that is spoken here.
std::optional<Protocol> protocol_of(std::string_view content_type);
inline constexpr std::string_view kAcceptPost =
    "application/json, application/proto, application/connect+json, application/connect+proto, application/grpc-web+proto, "
    "application/grpc-web-text+proto";

// Connect-Timeout-Ms or grpc-timeout; nullopt: the client waits. Errc::invalid_argument when it cannot be read.
Result<std::optional<std::chrono::milliseconds>> timeout_of(const http::Headers& headers);

}  // namespace osb::api::connect
