// Pictures that are drawn again every second on a terminal, until somebody ends it; once where nobody watches.
#pragma once
#include <functional>
#include <string>

#include "base/result.h"

namespace osb::cli {

// Draws into one screen: lines that do not fit are left out, the terminal is as before when it returns. With `once`, or
// when stdout is no terminal, the picture is printed whole, a single time. An interrupt is the usual end: exit status 0.
Result<int> show_live(bool once, const std::function<Result<std::string>()>& draw);

}  // namespace osb::cli
