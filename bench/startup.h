// What the daemon costs before anybody asks it for anything: time to its first answer, memory and processor time when idle.
#pragma once
#include "daemon.h"
#include "options.h"

namespace bench {

inline const std::string kDaemonMemory = "serve and launcher, idle: resident memory";

void measure_startup(Context& context);

}  // namespace bench
