// The messages of the session service and their two forms on the wire: binary protobuf and proto3 JSON.
//
// decode(): Errc::malformed or Errc::invalid_argument with the field at fault. Fields nobody knows are skipped in the binary
// form, as protobuf wants it, and refused in JSON, as the REST door refuses them: a misspelt limit must not be an unlimited one.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "api/rpc/session_messages.h"
#include "base/result.h"

namespace osb::api::rpc {

enum class Form : std::uint8_t { binary, json };

// Larger requests are refused before they are read: standard input and pieces of files travel in them.
inline constexpr std::size_t kMaxRequestBytes = 4u << 20;

Result<> decode(const Schema& schema, Form form, std::string_view bytes, void* message);
std::string encode(const Schema& schema, Form form, const void* message);

template <class Message>
Result<Message> decode(Form form, std::string_view bytes) {
  Message message;
  if (auto done = decode(schema_of<Message>(), form, bytes, &message); !done) return std::move(done).error();
  return message;
}
template <class Message>
std::string encode(Form form, const Message& message) {
  return encode(schema_of<Message>(), form, &message);
}

Timestamp to_timestamp(WallTime time);

// "opensandbox.session.v1.SessionService", and its methods as the contract has them.
std::string_view service_name();
std::span<const MethodShape> method_shapes();

}  // namespace osb::api::rpc
