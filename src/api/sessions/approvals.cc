#include "api/approvals.h"

#include "api/sessions/handlers.h"

namespace osb::api::sessions {

Reply list_approvals(Context& context, Call call) {
  co_return http::Response::json(200, approvals_json(context.approvals->list(call.caller, true)));
}

Reply get_approval(Context& context, Call call) {
  CO_TRY(auto question, context.approvals->get(call.param("approval_id"), call.caller));
  co_return http::Response::json(200, api::approval_json(question));
}

Reply answer_approval(Context& context, Call call) {
  CO_TRY(auto answer, parse_approval_answer(call.body));
  CO_TRY(auto question, context.approvals->answer(call.param("approval_id"), answer.allow, std::move(answer.comment), call.caller));
  co_return http::Response::json(200, api::approval_json(question));
}

Reply watch_approvals(Context& context, Call call) {
  CO_TRY([[maybe_unused]] auto done,
         co_await api::watch_approvals(*context.approvals, std::move(call.caller), call.responder, std::move(call.extra)));
  co_return std::nullopt;
}

}  // namespace osb::api::sessions
