// A large file into a sandbox, out of it, and as a plain copy from file to file through a unix socket between two processes.
#pragma once
#include <string>

#include "daemon.h"
#include "options.h"

namespace bench {

inline const std::string kPlainCopy = "plain copy by unix socket";
inline const std::string kUpload = "into a sandbox, REST";
inline const std::string kDownload = "out of a sandbox, REST";

void measure_transfer(Context& context);

}  // namespace bench
