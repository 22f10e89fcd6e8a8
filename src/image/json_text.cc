#include "image/json_text.h"

#include "base/text.h"

namespace osb::image {

namespace json = boost::json;

Result<json::value> parse_json(std::string_view text, std::string_view what) {
  if (text.size() > kMaxJson) return Error(Errc::too_large, cat(what, " is larger than ", kMaxJson, " bytes"));
  json::parse_options options;
  options.max_depth = 32;
  boost::system::error_code code;
  json::value value = json::parse(text, code, {}, options);
  if (code) return Error(Errc::invalid_argument, cat(what, " is not JSON: ", code.message()));
  if (!value.is_object() && !value.is_array()) return Error(Errc::invalid_argument, cat(what, " has the wrong shape"));
  return value;
}

const json::object* object_at(const json::object& in, std::string_view key) {
  const json::value* value = in.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

const json::array* array_at(const json::object& in, std::string_view key) {
  const json::value* value = in.if_contains(key);
  return value == nullptr ? nullptr : value->if_array();
}

std::string text_at(const json::object& in, std::string_view key) {
  const json::value* value = in.if_contains(key);
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

std::uint64_t size_at(const json::object& in, std::string_view key) {
  const json::value* value = in.if_contains(key);
  if (value == nullptr) return 0;
  if (const auto* plain = value->if_uint64()) return *plain;
  const auto* number = value->if_int64();
  return number != nullptr && *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
}

std::vector<std::string> texts_at(const json::object& in, std::string_view key) {
  std::vector<std::string> texts;
  const json::array* array = array_at(in, key);
  if (array == nullptr) return texts;
  for (const json::value& value : *array)
    if (const json::string* text = value.if_string()) texts.emplace_back(text->data(), text->size());
  return texts;
}

}  // namespace osb::image
