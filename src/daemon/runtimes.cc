#include "daemon/runtimes.h"

#include "base/text.h"

namespace osb::daemon {

Task<Result<std::unique_ptr<runtime::Runtime>>> start_runtime(RuntimeSetting setting) {
  co_return Error(Errc::unsupported, cat("there is no runtime '", setting.config.runtime, "'")).with_hint("set runtime: native");
}

}  // namespace osb::daemon
