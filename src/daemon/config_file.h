// From the tree of a file to fields of Config.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "daemon/config.h"

namespace osb::daemon {

// At most kMaxYamlBytes of a regular file.
Result<std::string> read_config_file(const std::string& path);
// Every problem becomes one line in `problems`: "<file>:<line>: <key>: ...".
void apply_config_text(std::string_view text, const std::string& origin, Config& config, std::vector<std::string>& problems);

}  // namespace osb::daemon
