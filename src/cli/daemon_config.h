// From the command line to the daemon's configuration: what serve, daemon, config and doctor have in common.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/spec.h"
#include "daemon/config.h"

namespace osb::cli {

inline constexpr OptionSpec kConfigOption{"-c,--config", "FILE", "configuration file (YAML)"};

daemon::Inputs config_inputs(const Args& args);
// Problems of the command line or the file are usage errors, all of them at once.
Result<daemon::Config> load_config(const Args& args);
// The same options again, for a `serve` that we start.
std::vector<std::string> config_words(const Args& args);

}  // namespace osb::cli
