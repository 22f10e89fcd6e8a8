#include <boost/asio/experimental/awaitable_operators.hpp>

#include "api/sessions/event_stream.h"
#include "api/sessions/handlers.h"
#include "api/sessions/parse.h"
#include "api/sessions/render.h"
#include "api/sessions/session_id.h"

namespace osb::api::sessions {
namespace {

bool wants_stream(const Call& call, const ExecBody& body) {
  return body.stream || call.request.headers.get("Accept").find("text/event-stream") != std::string_view::npos;
}

Reply exec_as(Context& context, Call call, ExecBody body) {
  CO_TRY(auto id, session_id(call));
  if (!wants_stream(call, body)) {
    session::Collector taken(body.max_output_bytes);
    auto done = co_await context.service.exec(std::move(id), std::move(body.request), std::move(call.caller), taken);
    if (!done) co_return std::move(done).error();
    co_return http::Response::json(200, result_json(taken));
  }
  EventStream stream(call.responder, call.extra);
  auto done = co_await context.service.exec(std::move(id), std::move(body.request), std::move(call.caller), stream);
  auto finished = co_await stream.finish(std::move(done), call.request.request_id);
  if (!finished) co_return std::move(finished).error();
  co_return std::nullopt;
}

// A run belongs to its client: when that one hangs up, the run is cancelled, and with it its sandbox ends.
Task<Result<>> run_while_there(Context& context, http::Responder& responder, RunBody body, std::string key, Caller caller,
                               session::EventSink& sink) {
  using namespace asio::experimental::awaitable_operators;
  auto work = context.service.run(std::move(body.session), std::move(body.exec.request), std::move(key), std::move(caller), sink);
  auto first = co_await (std::move(work) || responder.closed());
  if (first.index() == 0) co_return std::get<0>(std::move(first));
  co_return Error(Errc::unavailable, "the client has gone").with_code(kClientGone);
}

}  // namespace

Reply exec(Context& context, Call call) {
  CO_TRY(auto body, parse_exec(call.body));
  co_return co_await exec_as(context, std::move(call), std::move(body));
}

Reply run_code(Context& context, Call call) {
  CO_TRY(auto body, parse_code(call.body));
  co_return co_await exec_as(context, std::move(call), std::move(body));
}

Reply run(Context& context, Call call) {
  CO_TRY(auto body, parse_run(call.body));
  CO_TRY(auto key, idempotency_key(call));
  if (!wants_stream(call, body.exec)) {
    session::Collector taken(body.exec.max_output_bytes);
    auto done = co_await run_while_there(context, call.responder, std::move(body), std::move(key), std::move(call.caller), taken);
    if (!done) co_return std::move(done).error();
    co_return http::Response::json(200, result_json(taken));
  }
  EventStream stream(call.responder, call.extra);
  auto done = co_await run_while_there(context, call.responder, std::move(body), std::move(key), std::move(call.caller), stream);
  auto finished = co_await stream.finish(std::move(done), call.request.request_id);
  if (!finished) co_return std::move(finished).error();
  co_return std::nullopt;
}

Reply resume_events(Context& context, Call call) {
  CO_TRY(auto id, session_id(call));
  CO_TRY(auto after, parse_after(call.request));
  EventStream stream(call.responder, call.extra);
  std::string exec_id(call.param("exec_id"));
  auto done = co_await context.service.resume(std::move(id), std::move(exec_id), after, std::move(call.caller), stream);
  auto finished = co_await stream.finish(std::move(done), call.request.request_id);
  if (!finished) co_return std::move(finished).error();
  co_return std::nullopt;
}

Reply interrupt_exec(Context& context, Call call) {
  CO_TRY(auto id, session_id(call));
  std::string exec_id(call.param("exec_id"));
  CO_TRY([[maybe_unused]] auto told, co_await context.service.interrupt(std::move(id), std::move(exec_id), std::move(call.caller)));
  co_return http::Response::empty(204);
}

}  // namespace osb::api::sessions
