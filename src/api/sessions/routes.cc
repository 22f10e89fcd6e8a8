#include "api/sessions/routes.h"

#include <array>

#include "api/sessions/handlers.h"

namespace osb::api::sessions {
namespace {

constexpr std::array kRoutes = std::to_array<RouteSpec>({
    {"POST", "/sessions", Body::json, false, create_session},
    {"GET", "/sessions", Body::none, false, list_sessions},
    {"GET", "/sessions/{session_id}", Body::none, false, get_session},
    {"DELETE", "/sessions/{session_id}", Body::none, false, delete_session},
    {"POST", "/sessions/{session_id}/exec", Body::large_json, false, exec},
    {"POST", "/sessions/{session_id}/code", Body::large_json, false, run_code},
    {"GET", "/sessions/{session_id}/execs/{exec_id}/events", Body::none, false, resume_events},
    {"DELETE", "/sessions/{session_id}/execs/{exec_id}", Body::none, false, interrupt_exec},
    {"GET", "/sessions/{session_id}/files", Body::none, false, download_file},
    {"PUT", "/sessions/{session_id}/files", Body::streamed, false, upload_file},
    {"DELETE", "/sessions/{session_id}/files", Body::none, false, delete_file},
    {"GET", "/sessions/{session_id}/directories", Body::none, false, list_directory},
    {"PUT", "/sessions/{session_id}/directories", Body::none, false, make_directory},
    {"POST", "/run", Body::large_json, false, run},
    {"GET", "/approvals", Body::none, false, list_approvals},
    {"GET", "/approvals/watch", Body::none, false, watch_approvals},
    {"GET", "/approvals/{approval_id}", Body::none, false, get_approval},
    {"POST", "/approvals/{approval_id}", Body::json, false, answer_approval},
    {"GET", "/health", Body::none, true, health},
});

}  // namespace

std::span<const RouteSpec> routes() { return kRoutes; }

}  // namespace osb::api::sessions
