// The handlers of the lifecycle API, one a route. The paths are in routes.cc.
#pragma once
#include "api/call.h"

namespace osb::api::v1 {

// sandboxes.cc
Reply create_sandbox(Context& context, Call call);
Reply list_sandboxes(Context& context, Call call);
Reply get_sandbox(Context& context, Call call);
Reply delete_sandbox(Context& context, Call call);
Reply pause_sandbox(Context& context, Call call);
Reply resume_sandbox(Context& context, Call call);
Reply renew_sandbox(Context& context, Call call);
Reply patch_metadata(Context& context, Call call);

// stats.cc
Reply get_stats(Context& context, Call call);

// diagnostics.cc
Reply diagnostics_logs(Context& context, Call call);
Reply diagnostics_events(Context& context, Call call);
Reply diagnostics_inspect(Context& context, Call call);
Reply diagnostics_summary(Context& context, Call call);

// endpoints.cc
Reply get_endpoint(Context& context, Call call);
Task<Result<>> proxy_request(Context& context, Call call, http::Responder& responder);

// images.cc
Reply list_images(Context& context, Call call);
Reply delete_image(Context& context, Call call);
Reply get_image(Context& context, Call call);
Reply prune_images(Context& context, Call call);
Task<Result<>> import_image(Context& context, Call call, http::Responder& responder);

// image_pull.cc
Task<Result<>> pull_image(Context& context, Call call, http::Responder& responder);

// about.cc
Reply health(Context& context, Call call);
Reply version(Context& context, Call call);
Reply docs(Context& context, Call call);
Reply openapi(Context& context, Call call);
Reply daemon_status(Context& context, Call call);
Reply daemon_reload(Context& context, Call call);
Reply take_metrics_event(Context& context, Call call);

// approvals.cc
Reply list_approvals(Context& context, Call call);
Reply get_approval(Context& context, Call call);
Reply answer_approval(Context& context, Call call);
Task<Result<>> watch_approvals(Context& context, Call call, http::Responder& responder);
Reply approvals_page(Context& context, Call call);
Reply approvals_script(Context& context, Call call);
Reply approvals_style(Context& context, Call call);

// snapshots.cc
Reply create_snapshot(Context& context, Call call);
Reply list_snapshots(Context& context, Call call);
Reply get_snapshot(Context& context, Call call);
Reply delete_snapshot(Context& context, Call call);

// volumes.cc
Reply list_volumes(Context& context, Call call);
Reply create_volume(Context& context, Call call);
Reply delete_volume(Context& context, Call call);

// pools.cc
Reply list_pools(Context& context, Call call);
Reply create_pool(Context& context, Call call);
Reply get_pool(Context& context, Call call);
Reply resize_pool(Context& context, Call call);
Reply delete_pool(Context& context, Call call);
Reply drain_pool(Context& context, Call call);
Reply drain_pools(Context& context, Call call);
Reply pool_stats(Context& context, Call call);

}  // namespace osb::api::v1
