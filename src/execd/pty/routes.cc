#include "execd/pty/routes.h"

#include "base/text.h"
#include "execd/files/paths.h"
#include "execd/json.h"
#include "execd/pty/attachment.h"
#include "execd/replies.h"
#include "execd/run_request.h"

namespace osb::execd {
namespace {

using http::Request;
using http::Responder;
using Params = http::Router::Params;

constexpr auto kGoodbye = std::chrono::seconds(2);

struct Wish {
  std::string cwd;
  std::string command;
};

Result<Wish> parse_wish(const Setup& setup, std::string_view body) {
  Wish wish;
  if (trim(body).empty()) return wish;
  TRY(auto object, parse_object(body));
  TRY(wish.command, text_member(object, "command"));
  if (wish.command.size() > kMaxCommandBytes || wish.command.find('\0') != std::string::npos)
    return Error(Errc::invalid_argument, cat("\"command\" must have no zero byte and at most ", kMaxCommandBytes, " bytes")).at("command");
  TRY(auto cwd, text_member(object, "cwd"));
  if (cwd.empty()) return wish;
  TRY(wish.cwd, files::expand(setup, cwd));
  return wish;
}

Task<void> create(Sandbox& sandbox, Request& request, Responder& responder) {
  auto body = co_await request.body->read_all(kMaxBody);
  if (!body) co_return co_await reply_bad_request(responder, std::move(body).error());
  auto wish = parse_wish(sandbox.setup, *body);
  if (!wish) co_return co_await reply_bad_request(responder, std::move(wish).error());
  if (!wish->cwd.empty()) {
    auto made = files::make_directories(wish->cwd, 0755);
    if (!made) co_return co_await reply_error(responder, 500, "RUNTIME_ERROR", made.error().what());
  }
  auto terminal = sandbox.terminals.add(std::move(wish->cwd), std::move(wish->command));
  if (!terminal) co_return co_await reply_error(responder, 429, "RUNTIME_ERROR", terminal.error().what());
  co_await reply_json(responder, 201, cat(R"({"session_id":")", (*terminal)->id(), "\"}"));
}

Task<void> reply_unknown(Responder& responder) { return reply_error(responder, 404, "CONTEXT_NOT_FOUND", "no such terminal session"); }

Task<void> show(Sandbox& sandbox, std::string_view id, Responder& responder) {
  auto terminal = sandbox.terminals.find(id);
  if (!terminal) return reply_unknown(responder);
  return reply_json(responder, 200,
                    cat(R"({"session_id":")", terminal->id(), R"(","running":)", terminal->running(), R"(,"output_offset":)",
                        terminal->output().end(), "}"));
}

Task<void> remove(Sandbox& sandbox, std::string_view id, Responder& responder) {
  return sandbox.terminals.remove(id) ? reply_empty(responder) : reply_unknown(responder);
}

struct Visit {
  bool tty = true;
  bool takeover = false;
  std::uint64_t since = 0;
};

Result<Visit> parse_visit(const Request& request) {
  TRY(auto query, http::parse_query(request.query));
  Visit visit;
  for (const auto& [name, value] : query) {
    if (name == "pty") visit.tty = value != "0" && value != "false";
    if (name == "takeover") visit.takeover = value == "1" || value == "true";
    if (name != "since") continue;
    auto since = parse_int<std::uint64_t>(value);
    if (!since) return Error(Errc::invalid_argument, "\"since\" must be a byte offset").at("since");
    visit.since = *since;
  }
  return visit;
}

// Says one error and closes: for a client that gets no conversation.
Task<void> turn_away(http::Stream& stream, Error error) {
  std::string_view code = error.code().empty() ? "START_FAILED" : std::string_view(error.code());
  stream.set_deadline(kGoodbye);
  std::string words = error_frame(code, error.what()) + http::ws_close(http::kWsInternal, code);
  auto sent = co_await stream.write_all(words);
  // What it said meanwhile is read before the socket closes, or the error could be lost with a reset.
  stream.shutdown_write();
  char bytes[512];
  for (std::size_t total = 0; sent && total < kMaxBody;) {
    auto n = co_await stream.read_some(bytes);
    if (!n || *n == 0) break;
    total += *n;
  }
}

// From the handshake on problems are told as frames.
Task<void> converse(Sandbox& sandbox, std::shared_ptr<Terminal> terminal, Visit visit, http::Headers headers, Responder& responder) {
  auto executor = co_await asio::this_coro::executor;
  Attachment client(executor, terminal);
  bool seated = !terminal->attached();
  // Before the handshake, so that of two that come at once one still gets a plain 409.
  if (seated) terminal->seat(client);
  auto stream = co_await responder.upgrade(101, std::move(headers));
  if (!stream) co_return;
  if (!seated) seated = co_await terminal->take_over(client);
  auto started = Result(Ok{});
  if (!seated)
    started = Error(Errc::conflict, "the other client does not let go").with_code("ALREADY_CONNECTED");
  else if (terminal->gone())
    started = Error(Errc::not_found, "the session was deleted").with_code("SESSION_GONE");
  else
    started = terminal->start(sandbox, visit.tty);
  if (started) co_return co_await client.converse(**stream, visit.since);
  terminal->leave(client);
  co_await turn_away(**stream, std::move(started).error());
}

Task<void> attach(Sandbox& sandbox, std::string_view id, Request& request, Responder& responder) {
  auto terminal = sandbox.terminals.find(id);
  if (!terminal) return reply_unknown(responder);
  auto visit = parse_visit(request);
  if (!visit) return reply_bad_request(responder, std::move(visit).error());
  if (auto refused = http::refuse_websocket(request)) return reply(responder, std::move(*refused));
  if (terminal->attached() && !visit->takeover)
    return reply_error(responder, 409, "ALREADY_CONNECTED", "another client is attached; takeover=1 sends it away");
  return converse(sandbox, std::move(terminal), *visit, http::websocket_headers(request), responder);
}

std::string_view id_of(const Params& params) { return params.find("id")->second; }

}  // namespace

void add_pty_routes(http::Router& routes, Sandbox& sandbox) {
  auto& s = sandbox;
  routes.add("POST", "/pty", [&s](Request& q, Responder& r, const Params&) { return create(s, q, r); });
  routes.add("GET", "/pty/{id}", [&s](Request&, Responder& r, const Params& p) { return show(s, id_of(p), r); });
  routes.add("DELETE", "/pty/{id}", [&s](Request&, Responder& r, const Params& p) { return remove(s, id_of(p), r); });
  routes.add("GET", "/pty/{id}/ws", [&s](Request& q, Responder& r, const Params& p) { return attach(s, id_of(p), q, r); });
}

}  // namespace osb::execd
