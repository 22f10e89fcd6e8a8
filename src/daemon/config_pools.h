// `pools` of the configuration file: read, and turned into what lifecycle keeps.
#pragma once
#include <vector>

#include "daemon/config.h"
#include "daemon/config_yaml.h"
#include "model/create_request.h"
#include "model/pool.h"

namespace osb::daemon {

// One item of the list. The error's text begins with the member at fault (".image: ...").
Result<NamedPoolConfig> read_pool(const YamlDocument& document, std::size_t item);
// With everything the pool does not say taken from the defaults of a sandbox. What is wrong was refused when it was read.
std::vector<PoolRecord> configured_pools(const Config& config, const CreateDefaults& defaults);

}  // namespace osb::daemon
