#include "execd/kernels/output.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "base/text.h"

namespace osb::execd {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxErrorText = 64 * 1024;
constexpr std::size_t kMaxPlainText = 256 * 1024;  // it is there twice, and escaped six times as long
constexpr std::size_t kMaxTraceback = 512 * 1024;

std::string_view view(const json::string& text) { return {text.data(), text.size()}; }
std::string_view view(json::string_view text) { return {text.data(), text.size()}; }

std::string shortened(std::string_view text, std::size_t limit = kMaxErrorText) {
  if (text.size() <= limit) return std::string(text);
  std::size_t kept = whole_characters(text, limit);
  return cat(text.substr(0, kept), "... [", text.size() - kept, " bytes left out]");
}

// Base64 comes with a newline behind it, which not every decoder likes.
std::string value_text(std::string_view type, const json::value& value) {
  if (!value.is_string()) return json::serialize(value);
  std::string_view text = view(value.get_string());
  bool encoded = type.starts_with("image/") && !type.starts_with("image/svg");
  while (encoded && text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text);
}

class Bundle {
 public:
  void add(std::string_view type, std::string_view text) {
    std::string member = cat(out_.empty() ? "" : ",", json_string(type), ":");
    append_json_string(member, text);
    if (out_.size() + member.size() <= kMaxResultBytes)
      out_ += member;
    else
      left_out_ += cat(left_out_.empty() ? "[" : ", ", type, " of ", text.size(), " bytes");
  }
  // Both names of plain text, with a note about what did not fit behind it.
  void add_plain(std::string_view text) {
    std::string whole(text);
    if (!left_out_.empty()) whole += cat(text.empty() ? "" : "\n", left_out_, " left out: too large for one event; write it to a file]");
    if (whole.empty()) return;
    add("text", whole);
    add("text/plain", whole);
  }
  std::string take() { return cat(R"("type":"result","results":{)", out_, "}"); }

 private:
  std::string out_;
  std::string left_out_;
};

}  // namespace

std::size_t whole_characters(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text.size();
  std::size_t end = limit;
  // At most three bytes back to the start of a character; bytes that are no UTF-8 are cut anywhere.
  for (int i = 0; i < 3 && end > 0 && (text[end] & 0xC0) == 0x80; ++i) --end;
  return end == 0 || (text[end] & 0xC0) == 0x80 ? limit : end;
}

std::string output_members(std::string_view type, std::string_view text) {
  return cat(R"("type":")", type, R"(","text":)", json_string(text));
}

std::string count_members(std::int64_t execution_count) { return cat(R"("type":"execution_count","execution_count":)", execution_count); }

std::string result_members(const json::object& bundle) {
  Bundle out;
  std::string plain;
  for (const auto& [key, value] : bundle) {
    std::string_view type = view(key);
    if (value.is_null()) continue;
    if (type == "text/plain")
      plain = value_text(type, value);
    else if (type != "text")
      out.add(type, value_text(type, value));
  }
  out.add_plain(shortened(plain, kMaxPlainText));
  return out.take();
}

std::string error_members(std::string_view name, std::string_view value, const json::object& content) {
  // Clients want both to say something.
  std::string title = shortened(trim(name).empty() ? std::string_view("Error") : name);
  std::string out = cat(R"("type":"error","error":{"ename":)", json_string(title), R"(,"evalue":)",
                        json_string(trim(value).empty() ? title : shortened(value)), R"(,"traceback":[)");
  const json::value* lines = content.if_contains("traceback");
  std::size_t start = out.size();
  for (const json::value& line : lines && lines->is_array() ? lines->get_array() : json::array()) {
    if (!line.is_string() || out.size() > kMaxTraceback) continue;
    if (out.size() > start) out += ',';
    append_json_string(out, shortened(view(line.get_string())));
  }
  if (out.size() == start) append_json_string(out, cat(title, ": ", shortened(value)));
  return out += "]}";
}

}  // namespace osb::execd
