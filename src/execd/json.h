// JSON that comes to execd, read as the protocol wants it: unknown members and bytes after the first value are ignored.
#pragma once
#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "execd/environment.h"

namespace osb::execd {

// Depth at most 64; the error says what is wrong, never what the text was.
Result<boost::json::value> parse_value(std::string_view text);
Result<boost::json::object> parse_object(std::string_view text);

// Members: absent and null leave the default, another type is Errc::malformed naming the member.
Result<std::string> text_member(const boost::json::object& object, std::string_view name);
Result<bool> flag_member(const boost::json::object& object, std::string_view name);
Result<std::optional<std::int64_t>> number_member(const boost::json::object& object, std::string_view name);
Result<std::optional<std::uint32_t>> id_member(const boost::json::object& object, std::string_view name);  // a uid or gid
Result<std::vector<std::string>> list_member(const boost::json::object& object, std::string_view name);
Result<Env> env_member(const boost::json::object& object, std::string_view name);

}  // namespace osb::execd
