// Writes one JSON object as text, member by member; absent things are left out, never null.
#pragma once
#include <concepts>
#include <string>
#include <string_view>

#include "base/text.h"

namespace osb::api {

class ObjectText {
 public:
  ObjectText& add(std::string_view name, std::string_view text) {
    append_json_string(key(name), text);
    return *this;
  }
  ObjectText& add(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
  template <std::integral N>
    requires(!std::same_as<N, bool>)
  ObjectText& add(std::string_view name, N value) {
    append(key(name), value);
    return *this;
  }
  ObjectText& add(std::string_view name, const char* text) { return add(name, std::string_view(text)); }
  ObjectText& add_unless_empty(std::string_view name, std::string_view text) { return text.empty() ? *this : add(name, text); }
  ObjectText& raw(std::string_view name, std::string_view json) {
    key(name) += json;
    return *this;
  }
  // The place where the member's value is to be appended. Names are ours and need no escape.
  std::string& key(std::string_view name) {
    if (text_.capacity() < kUsualBytes) text_.reserve(kUsualBytes);
    append_all(text_, text_.empty() ? '{' : ',', '"', name, "\":");
    return text_;
  }
  std::string done() && {
    if (text_.empty()) text_ = "{";
    text_ += '}';
    return std::move(text_);
  }

 private:
  static constexpr std::size_t kUsualBytes = 240;
  std::string text_;
};

}  // namespace osb::api
