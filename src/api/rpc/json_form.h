// proto3 JSON, read and written by the tables of schema.h: lowerCamelCase out, both spellings in; 64-bit numbers as strings,
// bytes as base64, timestamps as RFC 3339. Members nobody knows are refused.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "api/rpc/schema.h"
#include "base/result.h"

namespace osb::api::rpc {

Result<> from_json(const Schema& schema, std::string_view text, void* message);
void append_as_json(const Schema& schema, const void* message, std::string& out);

std::string base64_unpadded(std::string_view bytes);
// Standard and URL alphabet, with or without padding; nullopt when it is neither.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace osb::api::rpc
