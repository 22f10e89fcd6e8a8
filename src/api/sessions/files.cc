#include "api/sessions/handlers.h"
#include "api/sessions/parse.h"
#include "api/sessions/render.h"
#include "api/sessions/session_id.h"

namespace osb::api::sessions {
namespace {

// The bytes of a file on their way out. The head leaves with the first of them: until then a refusal is an answer.
class FileStream {
 public:
  FileStream(http::Responder& responder, http::Headers extra) : responder_(responder), headers_(std::move(extra)) {
    headers_.add("Content-Type", "application/octet-stream");
    headers_.add("X-Content-Type-Options", "nosniff");
  }
  Task<Result<>> take(std::string_view bytes) {
    if (begun_) co_return co_await responder_.chunk(bytes);
    begun_ = true;
    co_return co_await responder_.begin(200, std::move(headers_), bytes);
  }
  Task<Result<>> finish() {
    if (begun_) co_return co_await responder_.end();
    http::Response empty{200, std::move(headers_), {}};
    co_return co_await responder_.send(std::move(empty));
  }

 private:
  http::Responder& responder_;
  http::Headers headers_;
  bool begun_ = false;
};

}  // namespace

Reply download_file(Context& context, Call call) {
  CO_TRY(auto id, session_id(call));
  CO_TRY(auto query, parse_file_query(call.request.query, false));
  FileStream stream(call.responder, call.extra);
  session::Service::TakeBytes take = [&stream](std::string_view bytes) { return stream.take(bytes); };
  auto done = co_await context.service.read_file(std::move(id), std::move(query.path), std::move(call.caller), std::move(take));
  if (!done) co_return std::move(done).error();  // cut off visibly when bytes have left already
  [[maybe_unused]] auto sent = co_await stream.finish();
  co_return std::nullopt;
}

Reply upload_file(Context& context, Call call) {
  CO_TRY(auto id, session_id(call));
  CO_TRY(auto query, parse_file_query(call.request.query, true));
  CO_TRY(auto info,
         co_await context.service.write_file(std::move(id), std::move(query.path), query.mode, *call.request.body, std::move(call.caller)));
  co_return http::Response::json(201, file_json(info));
}

Reply delete_file(Context& context, Call call) {
  CO_TRY(auto id, session_id(call));
  CO_TRY(auto query, parse_file_query(call.request.query, false));
  CO_TRY([[maybe_unused]] auto gone, co_await context.service.remove_file(std::move(id), std::move(query.path), std::move(call.caller)));
  co_return http::Response::empty(204);
}

Reply list_directory(Context& context, Call call) {
  CO_TRY(auto id, session_id(call));
  CO_TRY(auto query, parse_file_query(call.request.query, false));
  CO_TRY(auto entries, co_await context.service.list_directory(std::move(id), std::move(query.path), std::move(call.caller)));
  co_return http::Response::json(200, directory_json(entries));
}

Reply make_directory(Context& context, Call call) {
  CO_TRY(auto id, session_id(call));
  CO_TRY(auto query, parse_file_query(call.request.query, false));
  CO_TRY([[maybe_unused]] auto made, co_await context.service.make_directory(std::move(id), std::move(query.path), std::move(call.caller)));
  co_return http::Response::empty(204);
}

}  // namespace osb::api::sessions
