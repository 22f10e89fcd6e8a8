#include "execd/json.h"

#include <boost/json/stream_parser.hpp>

#include "base/text.h"

namespace osb::execd {
namespace {

namespace json = boost::json;

Error wrong_type(std::string_view name, std::string_view wanted) {
  return Error(Errc::malformed, cat("\"", name, "\" must be ", wanted)).at(name);
}

// nullptr: absent or null.
const json::value* find(const json::object& object, std::string_view name) {
  auto* value = object.if_contains({name.data(), name.size()});
  return value && !value->is_null() ? value : nullptr;
}

std::string to_std(const json::string& text) { return {text.data(), text.size()}; }

}  // namespace

Result<json::value> parse_value(std::string_view text) {
  json::parse_options options;
  options.max_depth = 64;
  json::stream_parser parser({}, options);
  boost::system::error_code ec;
  parser.write_some(text.data(), text.size(), ec);
  if (!ec && !parser.done()) parser.finish(ec);
  if (ec) return Error(Errc::malformed, cat("the body is not JSON: ", ec.message()));
  return parser.release();
}

Result<json::object> parse_object(std::string_view text) {
  TRY(auto value, parse_value(text));
  if (!value.is_object()) return Error(Errc::malformed, "the body must be a JSON object");
  return std::move(value.get_object());
}

Result<std::string> text_member(const json::object& object, std::string_view name) {
  auto* value = find(object, name);
  if (!value) return std::string();
  if (!value->is_string()) return wrong_type(name, "a string");
  return to_std(value->get_string());
}

Result<bool> flag_member(const json::object& object, std::string_view name) {
  auto* value = find(object, name);
  if (!value) return false;
  if (!value->is_bool()) return wrong_type(name, "true or false");
  return value->get_bool();
}

Result<std::optional<std::int64_t>> number_member(const json::object& object, std::string_view name) {
  auto* value = find(object, name);
  if (!value) return std::optional<std::int64_t>();
  boost::system::error_code ec;
  auto number = value->to_number<std::int64_t>(ec);
  if (ec) return wrong_type(name, "a whole number");
  return std::optional(number);
}

Result<std::optional<std::uint32_t>> id_member(const json::object& object, std::string_view name) {
  TRY(auto number, number_member(object, name));
  if (!number) return std::optional<std::uint32_t>();
  if (*number < 0 || *number > kMaxId) return wrong_type(name, "a number from 0 to 4294967294");
  return std::optional(static_cast<std::uint32_t>(*number));
}

Result<std::vector<std::string>> list_member(const json::object& object, std::string_view name) {
  std::vector<std::string> list;
  auto* value = find(object, name);
  if (!value) return list;
  if (!value->is_array()) return wrong_type(name, "a list of strings");
  for (const json::value& item : value->get_array()) {
    if (!item.is_string()) return wrong_type(name, "a list of strings");
    list.push_back(to_std(item.get_string()));
  }
  return list;
}

Result<Env> env_member(const json::object& object, std::string_view name) {
  Env env;
  auto* value = find(object, name);
  if (!value) return env;
  if (!value->is_object()) return wrong_type(name, "an object of strings");
  for (const auto& [key, item] : value->get_object()) {
    if (!item.is_string()) return wrong_type(name, "an object of strings");
    std::string text = to_std(item.get_string());
    CHECK_OK(check_variable({key.data(), key.size()}, text));
    env.insert_or_assign(std::string(key.data(), key.size()), std::move(text));
  }
  return env;
}

}  // namespace osb::execd
