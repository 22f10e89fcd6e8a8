#include "api/v1/routes.h"

#include <array>

#include "api/v1/handlers.h"

namespace osb::api::v1 {
namespace {

constexpr auto kBoth = Mount::both;
constexpr auto kV1 = Mount::v1_only;
constexpr auto kRoot = Mount::root_only;
constexpr auto kKey = Access::key;
constexpr auto kOpen = Access::open;
constexpr auto kIgnored = Body::ignored;
constexpr auto kJson = Body::json;

constexpr std::array kRoutes = std::to_array<RouteSpec>({
    {"POST", "/sandboxes", kBoth, kKey, kJson, "Create a sandbox", create_sandbox},
    {"GET", "/sandboxes", kBoth, kKey, kIgnored, "List sandboxes", list_sandboxes},
    {"GET", "/sandboxes/{id}", kBoth, kKey, kIgnored, "Read one sandbox", get_sandbox},
    {"DELETE", "/sandboxes/{id}", kBoth, kKey, kIgnored, "Destroy a sandbox", delete_sandbox},
    {"POST", "/sandboxes/{id}/pause", kBoth, kKey, kIgnored, "Freeze a running sandbox", pause_sandbox},
    {"POST", "/sandboxes/{id}/resume", kBoth, kKey, kIgnored, "Thaw a paused sandbox", resume_sandbox},
    {"POST", "/sandboxes/{id}/renew-expiration", kBoth, kKey, kJson, "Set a new expiry", renew_sandbox},
    {"PATCH", "/sandboxes/{id}/metadata", kBoth, kKey, kJson, "Change metadata", patch_metadata},
    {"GET", "/sandboxes/{id}/stats", kBoth, kKey, kIgnored, "What a sandbox uses now", get_stats},
    {"GET", "/sandboxes/{id}/endpoints/{port}", kBoth, kKey, kIgnored, "Where a port of a sandbox is reached", get_endpoint},
    {"*", "/sandboxes/{id}/proxy/{port}", kBoth, Access::token, Body::streamed, "Talk to a port of a sandbox", nullptr, proxy_request},
    {"*", "/sandboxes/{id}/proxy/{port}/{path*}", kBoth, Access::token, Body::streamed, "Talk to a port of a sandbox", nullptr,
     proxy_request},

    {"GET", "/images", kV1, kKey, kIgnored, "List images", list_images},
    {"POST", "/images/import", kV1, Access::local, Body::streamed, "Import an image from a file of this machine", nullptr, import_image},
    {"POST", "/images/pull", kV1, kKey, Body::streamed, "Pull an image from a registry", nullptr, pull_image},
    {"POST", "/images/prune", kV1, kKey, kJson, "Remove images that nothing needs", prune_images},
    {"GET", "/images/{name*}", kV1, kKey, kIgnored, "Read one image", get_image},
    {"DELETE", "/images/{name*}", kV1, kKey, kIgnored, "Remove an image", delete_image},

    {"GET", "/volumes", kV1, kKey, kIgnored, "List named volumes", list_volumes},
    {"POST", "/volumes", kV1, kKey, kJson, "Make a named volume", create_volume},
    {"DELETE", "/volumes/{name}", kV1, kKey, kIgnored, "Remove a named volume", delete_volume},

    {"POST", "/sandboxes/{id}/snapshots", kBoth, kKey, kJson, "Take a snapshot of a sandbox's files", create_snapshot},
    {"GET", "/snapshots", kBoth, kKey, kIgnored, "List snapshots", list_snapshots},
    {"GET", "/snapshots/{id}", kBoth, kKey, kIgnored, "Read one snapshot", get_snapshot},
    {"DELETE", "/snapshots/{id}", kBoth, kKey, kIgnored, "Remove a snapshot", delete_snapshot},
    {"POST", "/pools", kBoth, kKey, kJson, "Make a pool", create_pool},
    {"GET", "/pools", kBoth, kKey, kIgnored, "List pools", list_pools},
    {"GET", "/pools/{name}", kBoth, kKey, kIgnored, "Read one pool", get_pool},
    {"PUT", "/pools/{name}", kBoth, kKey, kJson, "Resize a pool", resize_pool},
    {"DELETE", "/pools/{name}", kBoth, kKey, kIgnored, "Remove a pool", delete_pool},
    {"POST", "/osb/v1/pools/drain", kRoot, kKey, kIgnored, "End the sandboxes that were made ahead of time by demand", drain_pools},
    {"GET", "/osb/v1/pools/stats", kRoot, kKey, kIgnored, "Hits and misses of all pools", pool_stats},
    {"POST", "/osb/v1/pools/{name}/drain", kRoot, kKey, kIgnored, "Make a pool's spares anew", drain_pool},
    {"GET", "/sandboxes/{id}/diagnostics/logs", kBoth, kKey, kIgnored, "What a sandbox said", diagnostics_logs},
    {"GET", "/sandboxes/{id}/diagnostics/events", kBoth, kKey, kIgnored, "What happened to a sandbox", diagnostics_events},
    {"GET", "/sandboxes/{id}/diagnostics/inspect", kBoth, kKey, kIgnored, "Everything known about a sandbox", diagnostics_inspect},
    {"GET", "/sandboxes/{id}/diagnostics/summary", kBoth, kKey, kIgnored, "All three, short", diagnostics_summary},

    {"GET", "/approvals", kV1, kKey, kIgnored, "Commands that wait for a person", list_approvals},
    {"GET", "/approvals/watch", kV1, kKey, kIgnored, "Questions and answers as they come", nullptr, watch_approvals},
    {"GET", "/approvals/{id}", kV1, kKey, kIgnored, "Read one question", get_approval},
    {"POST", "/approvals/{id}", kV1, kKey, kJson, "Answer a question", answer_approval},
    {"GET", "/approvals", kRoot, kOpen, kIgnored, "A page to answer them", approvals_page},
    {"GET", "/approvals/app.js", kRoot, kOpen, kIgnored, "Script of that page", approvals_script},
    {"GET", "/approvals/style.css", kRoot, kOpen, kIgnored, "Style of that page", approvals_style},

    {"POST", "/metrics/events", kBoth, kKey, kIgnored, "Take a client's timing event; nothing is kept", take_metrics_event},
    {"GET", "/health", kBoth, kOpen, kIgnored, "Is the server up", health},
    {"GET", "/osb/v1/daemon", kRoot, Access::local, kIgnored, "What this daemon is and where it listens", daemon_status},
    {"POST", "/osb/v1/daemon/reload", kRoot, Access::local, kIgnored, "Read the configuration again", daemon_reload},
    {"GET", "/version", kV1, kKey, kIgnored, "Version and runtime", version},
    {"GET", "/openapi.json", kRoot, kOpen, kIgnored, "This table as OpenAPI", openapi},
    {"GET", "/docs", kRoot, kOpen, kIgnored, "This table as text", docs},
});

}  // namespace

std::span<const RouteSpec> routes() { return kRoutes; }

}  // namespace osb::api::v1
