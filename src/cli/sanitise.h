// Text from a sandbox, made safe to show: it can neither move a cursor nor forge a line (rule R-LOG).
#pragma once
#include <string>
#include <string_view>

namespace osb::cli {

// C0, DEL and C1 controls, line and paragraph separators, direction overrides and bytes that are not UTF-8 become
// \n, \t, \xNN or \u{NNNN}; everything else stays. Only run, exec and logs write a sandbox's bytes without this.
std::string sanitise(std::string_view text);

// Columns a terminal needs for sanitised text, counting one for each code point.
std::size_t width_of(std::string_view sanitised);

}  // namespace osb::cli
