// Routes that published clients know and this server does not serve yet: they say so, with the code clients expect.
#include "api/render.h"
#include "api/v1/handlers.h"

namespace osb::api::v1 {

Reply pools(Context&, Call) {
  co_return Error(Errc::unsupported, "Pools are not available with this runtime.").with_code("KUBERNETES::POOL_NOT_SUPPORTED");
}

}  // namespace osb::api::v1
