// The handlers of the session API, one a route. The paths are in routes.cc.
#pragma once
#include "api/sessions/call.h"

namespace osb::api::sessions {

// Of an answer that nobody waits for; it is nobody's failure.
inline constexpr std::string_view kClientGone = "SESSION::CLIENT_GONE";

// sessions.cc
Reply create_session(Context& context, Call call);
Reply list_sessions(Context& context, Call call);
Reply get_session(Context& context, Call call);
Reply delete_session(Context& context, Call call);
Reply health(Context& context, Call call);

// execs.cc
Reply exec(Context& context, Call call);
Reply run_code(Context& context, Call call);
Reply run(Context& context, Call call);
Reply resume_events(Context& context, Call call);
Reply interrupt_exec(Context& context, Call call);

// files.cc
Reply download_file(Context& context, Call call);
Reply upload_file(Context& context, Call call);
Reply delete_file(Context& context, Call call);
Reply list_directory(Context& context, Call call);
Reply make_directory(Context& context, Call call);

// approvals.cc
Reply list_approvals(Context& context, Call call);
Reply get_approval(Context& context, Call call);
Reply answer_approval(Context& context, Call call);
Reply watch_approvals(Context& context, Call call);

}  // namespace osb::api::sessions
