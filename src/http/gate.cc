#include "http/gate.h"

#include <algorithm>
#include <array>

#include "http/http.h"

namespace osb::http {
namespace {

constexpr Refusal kBareLineEnd{400, "BAD_REQUEST", "a line does not end with CRLF"};
constexpr Refusal kControl{400, "BAD_REQUEST", "control characters are not allowed in a message head"};
constexpr Refusal kEmptyStart{400, "BAD_REQUEST", "the first line is empty"};
constexpr Refusal kFolded{400, "BAD_REQUEST", "folded header lines are not allowed"};
constexpr Refusal kBadField{400, "BAD_REQUEST", "a header line is not 'name: value'"};
constexpr Refusal kTooManyFields{431, "HEADERS_TOO_LARGE", "too many header fields"};
constexpr Refusal kTooLarge{431, "HEADERS_TOO_LARGE", "the header section is too large"};
constexpr Refusal kLongTarget{414, "URI_TOO_LONG", "the request target is too long"};

// Text of a line: visible ASCII, space, tab and the upper half; never a control character.
constexpr std::array<bool, 256> make_text_table() {
  std::array<bool, 256> table{};
  for (unsigned c = 0x20; c < 256; ++c) table[c] = c != 0x7f;
  table['\t'] = true;
  return table;
}
constexpr auto kText = make_text_table();
bool is_text(char c) { return kText[static_cast<unsigned char>(c)]; }

}  // namespace

Refusal Gate::scan(std::string_view bytes) {
  // What lies behind the limit is not looked at, so one big read costs no more than many small ones.
  auto end = std::min(bytes.size(), limits_.head_bytes);
  while (at_ < end) {
    at_ = static_cast<std::size_t>(std::find_if_not(bytes.begin() + at_, bytes.begin() + end, is_text) - bytes.begin());
    if (at_ == end) break;
    auto c = bytes[at_];
    if (c == '\n') return kBareLineEnd;
    if (c != '\r') return kControl;
    if (at_ + 1 == end) break;  // the CR is looked at again together with its LF
    if (bytes[at_ + 1] != '\n') return kBareLineEnd;
    if (auto refusal = end_line(bytes.substr(line_, at_ - line_))) return refusal;
    at_ += 2;
    if (at_ - 2 == line_) {
      head_bytes_ = at_;
      return {};
    }
    line_ = at_;
  }
  return check_growth(bytes.size());
}

Refusal Gate::end_line(std::string_view line) {
  if (line_ == 0) {
    if (line.empty()) return kEmptyStart;
    return line.size() > limits_.first_line_bytes ? kLongTarget : Refusal{};
  }
  if (line.empty()) return {};
  if (line[0] == ' ' || line[0] == '\t') return kFolded;
  if (++fields_ > limits_.fields) return kTooManyFields;
  auto colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return kBadField;
  return {};
}

Refusal Gate::check_growth(std::size_t size) const {
  if (line_ == 0 && size > limits_.first_line_bytes) return kLongTarget;
  return size >= limits_.head_bytes ? kTooLarge : Refusal{};
}

}  // namespace osb::http
