// The binary form of protobuf, read and written by the tables of schema.h.
//
// Reading is strict where protobuf lets a reader choose: a known field with another wire type, a group, text that is no UTF-8
// and a number past its type are errors. Nesting is bounded by the schemas, which hold no cycle.
#pragma once
#include <string>
#include <string_view>

#include "api/rpc/schema.h"
#include "base/result.h"

namespace osb::api::rpc {

Result<> from_wire(const Schema& schema, std::string_view bytes, void* message);
void append_to_wire(const Schema& schema, const void* message, std::string& out);

// For the few messages that stand in headers and have no table.
void append_varint(std::string& out, std::uint64_t value);
void append_bytes_field(std::string& out, std::uint32_t number, std::string_view bytes);

}  // namespace osb::api::rpc
