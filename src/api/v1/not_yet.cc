// Routes that published clients know and this server does not serve yet: they say so, with the code clients expect.
#include "api/render.h"
#include "api/v1/handlers.h"
#include "api/v1/query.h"

namespace osb::api::v1 {

Reply create_snapshot(Context& context, Call call) {
  CO_TRY(auto id, sandbox_id(call));
  CO_TRY([[maybe_unused]] auto sandbox, context.lifecycle.get(id, call.caller));
  co_return Error(Errc::unsupported, "Snapshots are not available yet.").with_code("SNAPSHOT::NOT_IMPLEMENTED");
}

Reply list_snapshots(Context&, Call call) {
  CO_TRY(auto query, parse_list_query(call.request.query));
  co_return http::Response::json(200, listing_json({}, query.page));
}

Reply one_snapshot(Context&, Call) {
  co_return Error(Errc::unsupported, "Snapshots are not available yet.").with_code("SNAPSHOT::NOT_IMPLEMENTED");
}

Reply pools(Context&, Call) {
  co_return Error(Errc::unsupported, "Pools are not available with this runtime.").with_code("KUBERNETES::POOL_NOT_SUPPORTED");
}

}  // namespace osb::api::v1
