// Bytes of a sandbox as text that a person can be shown: valid UTF-8, lines ended by '\n', no control sequences.
#pragma once
#include <string>
#include <string_view>

namespace osb::api {

// CR LF and CR become '\n'; other controls (tab excepted), C1 controls and bytes that are not UTF-8 become U+FFFD.
std::string plain_text(std::string_view bytes);

// The last `lines` lines, at most `bytes` bytes of them; whole lines where one fits. `cut` is set when something was left out.
std::string_view last_lines(std::string_view text, std::size_t lines, std::size_t bytes, bool& cut);

}  // namespace osb::api
