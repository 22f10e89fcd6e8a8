#include "api/approvals.h"

#include "api/v1/approvals_page.h"
#include "api/v1/handlers.h"

namespace osb::api::v1 {
namespace {

Result<bool> wants_all(std::string_view query) {
  TRY(auto pairs, http::parse_query(query));
  bool all = false;
  for (const auto& [name, value] : pairs) {
    if (name != "all") continue;
    if (value != "true" && value != "false") return Error(Errc::malformed, "all must be true or false").at("all");
    all = value == "true";
  }
  return all;
}

// Nothing but this server's own files, no frame around it, nothing kept: the page is a place where a key is typed in.
http::Response page(std::string_view type, std::string_view text) {
  http::Response response{200, {}, std::string(text)};
  response.headers.add("Content-Type", std::string(type));
  response.headers.add("Cache-Control", "no-store");
  response.headers.add("Content-Security-Policy",
                       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
                       "frame-ancestors 'none'");
  response.headers.add("X-Content-Type-Options", "nosniff");
  response.headers.add("Referrer-Policy", "no-referrer");
  return response;
}

}  // namespace

Reply list_approvals(Context& context, Call call) {
  CO_TRY(auto all, wants_all(call.request.query));
  co_return http::Response::json(200, approvals_json(context.proxy.gate().approvals().list(call.caller, !all)));
}

Reply get_approval(Context& context, Call call) {
  CO_TRY(auto question, context.proxy.gate().approvals().get(call.param("id"), call.caller));
  co_return http::Response::json(200, approval_json(question));
}

Reply answer_approval(Context& context, Call call) {
  CO_TRY(auto answer, parse_approval_answer(call.body));
  CO_TRY(auto question, context.proxy.gate().approvals().answer(call.param("id"), answer.allow, std::move(answer.comment), call.caller));
  co_return http::Response::json(200, approval_json(question));
}

Task<Result<>> watch_approvals(Context& context, Call call, http::Responder& responder) {
  return api::watch_approvals(context.proxy.gate().approvals(), std::move(call.caller), responder);
}

Reply approvals_page(Context&, Call) { co_return page("text/html; charset=utf-8", kApprovalsHtml); }
Reply approvals_script(Context&, Call) { co_return page("text/javascript; charset=utf-8", kApprovalsScript); }
Reply approvals_style(Context&, Call) { co_return page("text/css; charset=utf-8", kApprovalsStyle); }

}  // namespace osb::api::v1
