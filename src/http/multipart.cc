#include "http/multipart.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace osb::http {
namespace {

constexpr std::size_t kMaxPadding = 64;

bool boundary_char(char c) {
  bool alnum = (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z');
  return alnum || std::string_view("'()+_,-./:=? ").find(c) != std::string_view::npos;
}

std::string_view until(std::string_view text, char c) { return text.substr(0, text.find(c)); }

// Takes a quoted string or a bare word off the front of `text`.
std::string take_value(std::string_view& text) {
  std::string value;
  if (!text.starts_with('"')) {
    auto word = until(text, ';');
    text.remove_prefix(word.size());
    return std::string(trim(word));
  }
  text.remove_prefix(1);
  while (!text.empty() && text[0] != '"') {
    if (text[0] == '\\' && text.size() > 1) text.remove_prefix(1);
    value += text[0];
    text.remove_prefix(1);
  }
  text.remove_prefix(std::min<std::size_t>(1, text.size()));
  return value;
}

std::size_t common(std::string_view a, std::string_view b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

}  // namespace

std::optional<std::string> header_parameter(std::string_view value, std::string_view name) {
  value.remove_prefix(until(value, ';').size());
  while (!value.empty()) {
    value.remove_prefix(1);  // the semicolon
    auto key = value.substr(0, value.find_first_of("=;"));
    value.remove_prefix(key.size());
    if (!value.starts_with('=')) continue;
    value.remove_prefix(1);
    auto text = take_value(value);
    if (iequals(trim(key), name)) return text;
    value.remove_prefix(until(value, ';').size());
  }
  return std::nullopt;
}

std::optional<std::string> Multipart::boundary_of(std::string_view content_type) {
  if (!iequals(trim(until(content_type, ';')), "multipart/form-data")) return std::nullopt;
  auto boundary = header_parameter(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > kMaxBoundary || boundary->back() == ' ') return std::nullopt;
  return std::ranges::all_of(*boundary, boundary_char) ? boundary : std::nullopt;
}

Multipart::Multipart(std::string_view boundary) : delimiter_(cat("\r\n--", boundary)) {}

Multipart::Event Multipart::next(std::string_view& input) {
  while (!input.empty()) {
    Event event;
    switch (state_) {
      case State::preamble:
        event = content(input);
        if (event.kind == Kind::data) event.kind = Kind::more;  // text in front of the first part is nobody's
        break;
      case State::body: event = content(input); break;
      case State::delimiter_end: event = delimiter_end(input); break;
      case State::head: event = head(input); break;
      case State::done: input = {}; return {Kind::end};
      case State::failed: return {Kind::failed};
    }
    if (event.kind != Kind::more) return event;
  }
  return {state_ == State::done ? Kind::end : Kind::more};
}

Multipart::Event Multipart::content(std::string_view& input) {
  if (matched_ > 0) {
    auto n = common(input, std::string_view(delimiter_).substr(matched_));
    if (matched_ + n == delimiter_.size()) {
      input.remove_prefix(n);
      return found();
    }
    if (n == input.size()) {
      matched_ += n;
      input = {};
      return {};
    }
    // No delimiter after all. What was held back is content, and no delimiter begins inside it.
    return {Kind::data, std::string_view(delimiter_).substr(0, std::exchange(matched_, 0))};
  }
  for (std::size_t at = 0;; ++at) {
    at = std::min(input.find('\r', at), input.size());
    auto n = common(input.substr(at), delimiter_);
    bool whole = n == delimiter_.size();
    if (at == 0 && whole) {
      input.remove_prefix(n);
      return found();
    }
    if (!whole && at + n < input.size()) continue;
    auto data = input.substr(0, at);
    if (!whole) matched_ = n;
    input.remove_prefix(whole ? at : input.size());
    return {data.empty() ? Kind::more : Kind::data, data};
  }
}

Multipart::Event Multipart::found() {
  matched_ = 0;
  line_.clear();
  bool was_part = state_ == State::body;
  state_ = State::delimiter_end;
  return {was_part ? Kind::part_end : Kind::more};
}

// "--" ends the body; blanks and a line end lead to the head of a part.
Multipart::Event Multipart::delimiter_end(std::string_view& input) {
  while (!input.empty()) {
    line_ += input[0];
    input.remove_prefix(1);
    if (line_ == "--") {
      state_ = State::done;
      return {Kind::end};
    }
    if (line_.ends_with("\r\n")) {
      if (!trim(std::string_view(line_).substr(0, line_.size() - 2)).empty()) return fail("a boundary has more behind it");
      line_.clear();
      state_ = State::head;
      return {};
    }
    if (line_.size() > kMaxPadding) return fail("a boundary has more behind it");
  }
  return {};
}

Multipart::Event Multipart::head(std::string_view& input) {
  while (!input.empty()) {
    line_ += input[0];
    input.remove_prefix(1);
    if (line_.size() > kMaxHead) return fail("the head of a part is too long");
    if (line_ != "\r\n" && !line_.ends_with("\r\n\r\n")) continue;
    name_.clear();
    for (std::string_view field : split(line_, '\n')) {
      if (!iequals(trim(until(field, ':')), "Content-Disposition") || field.find(':') == field.npos) continue;
      field.remove_prefix(field.find(':') + 1);
      if (field.ends_with('\r')) field.remove_suffix(1);
      name_ = header_parameter(field, "name").value_or("");
    }
    line_.clear();
    state_ = State::body;
    return {Kind::part};
  }
  return {};
}

Multipart::Event Multipart::fail(std::string_view problem) {
  state_ = State::failed;
  problem_ = problem;
  return {Kind::failed};
}

}  // namespace osb::http
