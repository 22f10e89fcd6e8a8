// JSON that others wrote: bounded in size and depth, read member by member with the type that must be there.
#pragma once
#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace osb::image {

inline constexpr std::size_t kMaxJson = 4u << 20;

// An object or an array; depth at most 32. `what` names the document in errors.
Result<boost::json::value> parse_json(std::string_view text, std::string_view what);

// nullptr when absent, null or of another type: these members are optional wherever they are read.
const boost::json::object* object_at(const boost::json::object& in, std::string_view key);
const boost::json::array* array_at(const boost::json::object& in, std::string_view key);
std::string text_at(const boost::json::object& in, std::string_view key);    // "" when there is none
std::uint64_t size_at(const boost::json::object& in, std::string_view key);  // 0 when there is none
// Only the texts of an array; others are passed over.
std::vector<std::string> texts_at(const boost::json::object& in, std::string_view key);

}  // namespace osb::image
