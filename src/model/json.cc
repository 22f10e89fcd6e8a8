#include "model/json.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <cmath>

#include "base/text.h"

namespace osb {
namespace {

namespace json = boost::json;
using Ec = boost::system::error_code;

// Any order finds equal neighbours; this one compares most pairs by one number.
bool shorter_first(const std::string& a, const std::string& b) { return a.size() != b.size() ? a.size() < b.size() : a < b; }

// Builds the value and looks at each member name on the way, because a finished object no longer shows that
// a name came twice.
class Builder {
 public:
  // Of single parts; JsonLimits::bytes bounds the whole before any of it is read.
  static constexpr std::size_t kMostOfAny = 16u << 20;
  static constexpr std::size_t max_object_size = kMostOfAny;
  static constexpr std::size_t max_array_size = kMostOfAny;
  static constexpr std::size_t max_key_size = kMostOfAny;
  static constexpr std::size_t max_string_size = kMostOfAny;

  json::value release() { return stack_.release(); }
  const std::string& problem() const { return problem_; }

  bool on_document_begin(Ec&) {
    stack_.reset();
    return true;
  }
  bool on_document_end(Ec&) { return true; }
  bool on_object_begin(Ec&) { return true; }
  bool on_object_end(std::size_t n, Ec& ec) {
    auto first = keys_.end() - static_cast<std::ptrdiff_t>(n);
    std::sort(first, keys_.end(), shorter_first);
    if (auto twice = std::adjacent_find(first, keys_.end()); twice != keys_.end())
      return fail(ec, cat("member ", json_string(std::string_view(*twice).substr(0, 80)), " appears twice"));
    keys_.erase(first, keys_.end());
    stack_.push_object(n);
    return true;
  }
  bool on_array_begin(Ec&) { return true; }
  bool on_array_end(std::size_t n, Ec&) {
    stack_.push_array(n);
    return true;
  }
  bool on_key_part(json::string_view s, std::size_t, Ec&) {
    key_.append(s.data(), s.size());
    stack_.push_chars(s);
    return true;
  }
  bool on_key(json::string_view s, std::size_t, Ec&) {
    key_.append(s.data(), s.size());
    keys_.push_back(std::move(key_));
    key_.clear();
    stack_.push_key(s);
    return true;
  }
  bool on_string_part(json::string_view s, std::size_t, Ec&) {
    stack_.push_chars(s);
    return true;
  }
  bool on_string(json::string_view s, std::size_t, Ec&) {
    stack_.push_string(s);
    return true;
  }
  bool on_number_part(json::string_view, Ec&) { return true; }
  bool on_int64(std::int64_t i, json::string_view, Ec&) {
    stack_.push_int64(i);
    return true;
  }
  bool on_uint64(std::uint64_t u, json::string_view, Ec&) {
    stack_.push_uint64(u);
    return true;
  }
  bool on_double(double d, json::string_view, Ec& ec) {
    if (!std::isfinite(d)) return fail(ec, "a number is too large");
    stack_.push_double(d);
    return true;
  }
  bool on_bool(bool b, Ec&) {
    stack_.push_bool(b);
    return true;
  }
  bool on_null(Ec&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, Ec&) { return true; }
  bool on_comment(json::string_view, Ec&) { return true; }

 private:
  bool fail(Ec& ec, std::string problem) {
    problem_ = std::move(problem);
    ec = json::make_error_code(json::error::syntax);
    return false;
  }

  json::value_stack stack_;
  std::vector<std::string> keys_;  // names of all open objects, innermost last
  std::string key_;
  std::string problem_;
};

std::string describe(const Ec& ec, const Builder& builder) {
  if (!builder.problem().empty()) return builder.problem();
  if (ec == json::error::too_deep) return "nested too deeply";
  if (ec == json::error::incomplete) return "ends too early";
  if (ec == json::error::extra_data) return "bytes after the end";
  return ec.message();
}

Result<json::value> parse_bounded(std::string_view text, std::size_t depth) {
  json::parse_options options;
  options.max_depth = depth;
  json::basic_parser<Builder> parser(options);
  Ec ec;
  auto used = parser.write_some(false, text.data(), text.size(), ec);
  if (!ec && used < text.size()) ec = json::error::extra_data;
  if (ec) return Error(Errc::invalid_argument, cat("not valid JSON near byte ", used, ": ", describe(ec, parser.handler())));
  return parser.handler().release();
}

}  // namespace

Result<json::value> parse_json(std::string_view text, JsonLimits limits) {
  if (text.size() > limits.bytes)
    return Error(Errc::too_large, cat("JSON of ", text.size(), " bytes; at most ", limits.bytes, " are read"));
  if (text.empty()) return Error(Errc::invalid_argument, "a JSON body is needed and there is none");
  if (text.starts_with("\xEF\xBB\xBF")) return Error(Errc::invalid_argument, "not valid JSON: it begins with a byte order mark");
  try {
    return parse_bounded(text, limits.depth);
  } catch (const std::exception& e) {  // Boost.JSON reports its own size limits by throwing
    return Error(Errc::invalid_argument, cat("not valid JSON: ", std::string_view(e.what())));
  }
}

Result<json::object> parse_json_object(std::string_view text, JsonLimits limits) {
  TRY(auto value, parse_json(text, limits));
  if (!value.is_object()) return Error(Errc::malformed, "a JSON object is needed");
  return std::move(value.get_object());
}

void append_json_map(std::string& out, const StringMap& map) {
  out += '{';
  for (const auto& [name, value] : map) {
    if (out.back() != '{') out += ',';
    append_json_string(out, name);
    out += ':';
    append_json_string(out, value);
  }
  out += '}';
}

void append_json_list(std::string& out, const std::vector<std::string>& list) {
  out += '[';
  for (const auto& item : list) {
    if (out.back() != '[') out += ',';
    append_json_string(out, item);
  }
  out += ']';
}

}  // namespace osb
