#include "api/connect/door.h"

#include <algorithm>

#include "api/connect/envelope.h"
#include "api/connect/streams.h"
#include "api/rpc/json_form.h"
#include "base/log.h"
#include "base/text.h"

namespace osb::api::connect {
namespace {

using rpc::Method;
using rpc::Status;

Error no_such_method(std::string_view path) {
  return Error(Errc::unsupported, cat("There is no method ", path.substr(0, 128), ".")).with_code("GENERAL::NO_SUCH_METHOD");
}

Error needs_grpc(const Method& method) {
  return Error(Errc::unsupported, cat(method.name, " talks both ways at once, which HTTP/1.1 cannot carry."))
      .with_code("GENERAL::NEEDS_GRPC")
      .with_hint("Call it over gRPC (grpc.enabled), or use the terminal of the lifecycle API.");
}

Error wrong_framing(const Method& method, bool streams) {
  return Error(Errc::unsupported, cat(method.name, streams ? " streams: use application/connect+json or application/connect+proto."
                                                           : " has one answer: use application/json or application/proto."))
      .with_code("GENERAL::UNSUPPORTED_MEDIA_TYPE");
}

Result<const Method*> method_of(const http::Request& request, const Protocol& protocol) {
  auto name = std::string_view(request.path).substr(std::min(request.path.size(), rpc::service_name().size() + 2));
  const Method* method = rpc::find_method(name);
  if (!method) return no_such_method(request.path);
  if (method->both_ways()) return needs_grpc(*method);
  bool streams = method->client_streams || method->server_streams;
  if (!protocol.web() && streams != protocol.framed()) return wrong_framing(*method, streams);
  if (method->client_streams && protocol.kind == Kind::grpc_web_text) return needs_grpc(*method);
  return method;
}

Result<> check_coding(const http::Headers& headers) {
  for (auto name : {"Content-Encoding", "Connect-Content-Encoding", "grpc-encoding"}) {
    auto coding = headers.get(name);
    if (!coding.empty() && !iequals(coding, "identity"))
      return Error(Errc::unsupported, "Compressed messages are not taken.").with_code("GENERAL::COMPRESSED").at(name);
  }
  return Ok{};
}

// A failure of ours is logged here, once, with the id the client can quote.
void note_failure(const Error& error, const http::Request& request) {
  auto code = rpc::to_status(error).code;
  if (code != rpc::Code::internal && code != rpc::Code::unavailable) return;
  log::error("call failed", {{"request_id", request.request_id}, {"path", request.path}, {"code", error.code()}, {"error", error.what()}});
}

http::Response unary_error(const Status& status, http::Headers headers) {
  auto response = http::Response::json(rpc::connect_http_status(status.code), rpc::connect_error(status));
  for (const auto& field : headers.fields()) response.headers.add(field.name, field.value);
  if (status.retry_after_seconds > 0) response.headers.add("Retry-After", cat(status.retry_after_seconds));
  return response;
}

Task<void> finish_unary(const Protocol& protocol, Result<> done, std::string answer, http::Responder& responder, http::Headers headers) {
  http::Response response;
  if (done) {
    headers.add("Content-Type", protocol.content_type);
    response = {200, std::move(headers), std::move(answer)};
  } else {
    response = unary_error(rpc::to_status(done.error()), std::move(headers));
  }
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));  // a client that left needs no answer
}

std::chrono::steady_clock::duration limit_of(const Method& method, std::optional<std::chrono::milliseconds> asked) {
  std::chrono::steady_clock::duration own = method.limit;
  return asked ? std::min<std::chrono::steady_clock::duration>(own, *asked) : own;
}

Task<void> never_gone() {
  auto executor = co_await asio::this_coro::executor;
  Timer forever(executor, Timer::time_point::max());
  co_await forever.async_wait(nothrow);
}

// The request's messages, ready to be read by the method.
Task<Result<std::unique_ptr<rpc::In>>> open_input(const Protocol& protocol, const Method& method, http::BodyReader& body) {
  std::unique_ptr<rpc::In> in;
  if (method.client_streams) {
    in = std::make_unique<BodyIn>(body);
    co_return std::move(in);
  }
  // All of it is read before the method runs: from then on the connection only tells that the client has gone.
  std::size_t most = rpc::kMaxRequestBytes + 64;
  if (protocol.kind == Kind::grpc_web_text) most = most / 3 * 4;
  CO_TRY(auto bytes, co_await body.read_all(most));
  if (protocol.kind == Kind::connect_unary) {
    in = std::make_unique<WholeIn>(std::move(bytes));
    co_return std::move(in);
  }
  if (protocol.kind == Kind::grpc_web_text) {
    auto plain = from_text_form(bytes);
    if (!plain) co_return Error(Errc::malformed, "The body is no base64.").with_code("GENERAL::MALFORMED");
    bytes = *std::move(plain);
  }
  in = std::make_unique<FramesIn>(std::move(bytes));
  co_return std::move(in);
}

struct Exchange {
  session::Service& service;
  Caller caller;
  const Protocol& protocol;
  rpc::Out& out;
};

Task<Result<>> call_method(Exchange& exchange, http::Request& request, http::Responder& responder) {
  CO_TRY(auto method, method_of(request, exchange.protocol));
  CO_TRY([[maybe_unused]] auto plain, check_coding(request.headers));
  CO_TRY(auto asked, timeout_of(request.headers));
  CO_TRY(auto in, co_await open_input(exchange.protocol, *method, *request.body));
  rpc::Call call{exchange.service, exchange.caller, exchange.protocol.form, *in, exchange.out};
  auto gone = method->client_streams ? never_gone() : responder.closed();
  co_return co_await rpc::attended(*method, call, std::move(gone), limit_of(*method, asked));
}

}  // namespace

bool is_rpc_path(std::string_view path) {
  auto name = rpc::service_name();
  return path.size() > name.size() + 1 && path[0] == '/' && path.substr(1, name.size()) == name && path[name.size() + 1] == '/';
}

Task<void> serve(session::Service& service, Caller caller, http::Request& request, http::Responder& responder, http::Headers headers) {
  auto protocol = protocol_of(request.headers.get("Content-Type"));
  if (request.method != "POST" || !protocol) {
    http::Response response{request.method != "POST" ? 405 : 415, std::move(headers), {}};
    response.headers.add("Allow", "POST");
    response.headers.add("Accept-Post", std::string(kAcceptPost));
    [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
    co_return;
  }
  if (protocol->kind == Kind::connect_unary) {
    KeptOut kept;
    Exchange exchange{service, std::move(caller), *protocol, kept};
    auto done = co_await call_method(exchange, request, responder);
    if (!done) note_failure(done.error(), request);
    co_return co_await finish_unary(*protocol, std::move(done), std::move(kept.message), responder, std::move(headers));
  }
  FramedOut out(responder, *protocol, std::move(headers));
  Exchange exchange{service, std::move(caller), *protocol, out};
  auto done = co_await call_method(exchange, request, responder);
  if (!done) note_failure(done.error(), request);
  co_await out.finish(done ? Status{} : rpc::to_status(done.error()));
}

Task<void> refuse(const Error& error, const http::Request& request, http::Responder& responder, http::Headers headers) {
  auto protocol = protocol_of(request.headers.get("Content-Type"));
  auto status = rpc::to_status(error);
  if (protocol && protocol->framed()) {
    FramedOut out(responder, *protocol, std::move(headers));
    co_return co_await out.finish(std::move(status));
  }
  [[maybe_unused]] auto sent = co_await responder.send(unary_error(status, std::move(headers)));
}

}  // namespace osb::api::connect
