#include "execd/shell/routes.h"

#include <sys/stat.h>

#include "base/id.h"
#include "base/text.h"
#include "execd/json.h"
#include "execd/replies.h"
#include "execd/run_request.h"
#include "execd/runs/follow.h"

namespace osb::execd {
namespace {

using http::Request;
using http::Responder;
using shell::Session;
using shell::ShellRun;

constexpr auto kInterruptGrace = std::chrono::milliseconds(3000);
constexpr auto kGoneGrace = std::chrono::milliseconds(500);
constexpr auto kPatience = std::chrono::seconds(10);

std::string new_uuid() {
  std::string hex = random_hex(16);
  hex[12] = '4';
  hex[16] = "89ab"[hex[16] & 3];
  return cat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-", hex.substr(16, 4), "-", hex.substr(20));
}

bool is_directory(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

// As the user of the sandbox and by a program in it: a session cannot make a directory its commands could not make.
Task<Result<>> make_directory(Sandbox& sandbox, std::string path) {
  RunRequest asked;
  asked.argv = {"mkdir", "-p", "--", path};
  CO_TRY(StartRequest start, prepare(sandbox.setup, std::move(asked)));
  start.cwd = "/";
  CO_TRY(auto process, sandbox.processes.start(start));
  bool ended = co_await process->wait_end(kPatience);
  if (!ended) process->kill_all();
  if (is_directory(path)) co_return Ok{};
  co_return Error(Errc::invalid_argument, cat("cwd ", json_string(path), " does not exist and cannot be made")).at("cwd");
}

Result<std::string> absolute(const Sandbox& sandbox, const std::string& cwd, const std::string& base) {
  const Setup& setup = sandbox.setup;
  auto path = expand_path(cwd, setup.env, setup.home, base);
  if (!path) return std::move(path).error().in("cwd").at("cwd");
  return path;
}

Task<void> refuse_start(Responder& responder, Error error) {
  bool callers = error.kind() == Errc::invalid_argument || error.kind() == Errc::malformed;
  if (callers) co_return co_await reply_bad_request(responder, std::move(error));
  co_await reply_error(responder, error.kind() == Errc::exhausted ? 429 : 500, "RUNTIME_ERROR", error.what());
}

Task<Result<std::shared_ptr<Session>>> make_session(Sandbox& sandbox, std::string body) {
  std::string cwd;
  if (!trim(body).empty()) {
    CO_TRY(auto object, parse_object(body));
    CO_TRY(cwd, text_member(object, "cwd"));
  }
  if (sandbox.sessions.full() || sandbox.processes.running() >= Commands::kMaxRunning)
    co_return Error(Errc::exhausted, cat("there are ", shell::Sessions::kMax, " sessions or 256 programs; delete or end one"));
  std::string place = sandbox.setup.cwd;
  if (!cwd.empty()) {
    CO_TRY(place, absolute(sandbox, cwd, sandbox.setup.cwd));
    if (!is_directory(place)) {
      auto made = co_await make_directory(sandbox, place);
      if (!made) co_return std::move(made).error();
    }
  } else if (!is_directory(place)) {
    place = "/";
  }
  auto session = std::make_shared<Session>(sandbox, new_uuid(), place);
  auto started = session->start_shell();
  if (!started) co_return std::move(started).error();
  sandbox.sessions.add(session);
  co_return session;
}

Task<void> create_session(Sandbox& sandbox, Request& request, Responder& responder) {
  auto body = co_await request.body->read_all(kMaxBody);
  if (!body) co_return co_await reply_bad_request(responder, std::move(body).error());
  auto session = co_await make_session(sandbox, *std::move(body));
  if (!session) co_return co_await refuse_start(responder, std::move(session).error());
  auto response = http::Response::json(200, cat("{\"session_id\":\"", (*session)->id(), "\"}"));
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
}

Result<shell::ShellRequest> read_request(const Sandbox& sandbox, const Session& session, std::string_view body) {
  TRY(RunRequest asked, parse_command_request(body));
  if (asked.command.empty() || asked.input)
    return Error(Errc::invalid_argument, "a session takes a \"command\" without input").at("command");
  shell::ShellRequest request{.command = std::move(asked.command), .cwd = {}, .timeout = asked.timeout, .raw = asked.raw};
  if (asked.cwd.empty()) return request;
  TRY(request.cwd, absolute(sandbox, asked.cwd, session.cwd()));
  if (!is_directory(request.cwd))
    return Error(Errc::invalid_argument, cat("cwd ", json_string(request.cwd), " is not a directory")).at("cwd");
  return request;
}

Task<void> stop_when_gone(Responder& responder, std::shared_ptr<Session> session, std::shared_ptr<ShellRun> run) {
  co_await responder.closed();
  session->stop(run, shell::Stop::interrupted, kGoneGrace);
}

// A client that goes ends its run, unless it gave a key to come back with.
Task<void> follow_or_stop(Responder& responder, std::shared_ptr<Session> session, std::shared_ptr<ShellRun> run,
                          std::shared_ptr<runs::Run> record) {
  auto executor = co_await asio::this_coro::executor;
  TaskGroup watching(executor);
  watching.spawn("session client", stop_when_gone(responder, session, run));
  bool heard = co_await runs::follow(std::move(record), responder);
  co_await watching.stop();
  if (!heard) session->stop(run, shell::Stop::interrupted, kGoneGrace);
}

Task<void> run_in_session(Sandbox& sandbox, std::string id, Request& request, Responder& responder) {
  auto body = co_await request.body->read_all(kMaxBody);
  if (!body) co_return co_await reply_bad_request(responder, std::move(body).error());
  runs::Key key;
  bool answered = co_await runs::answer_repeated(sandbox, request, responder, *body, key);
  if (answered) co_return;
  auto session = sandbox.sessions.find(id);
  if (!session)
    co_return co_await reply_error(responder, 404, "CONTEXT_NOT_FOUND", cat("no session has the id ", json_string(id.substr(0, 80))));
  auto asked = read_request(sandbox, *session, *body);
  if (!asked) co_return co_await reply_bad_request(responder, std::move(asked).error());
  if (session->full())
    co_return co_await reply_error(responder, 409, "RUNTIME_ERROR",
                                   cat("busy: ", Session::kMaxQueue, " runs wait in this session; wait for one or interrupt it"));
  bool durable = !key.text.empty();
  auto record = sandbox.runs.add(std::move(key));
  auto run = session->submit(*std::move(asked), record);
  if (durable) co_return void(co_await runs::follow(std::move(record), responder));
  co_await follow_or_stop(responder, std::move(session), std::move(run), std::move(record));
}

Task<void> delete_session(Sandbox& sandbox, std::string id, Responder& responder) {
  bool closed = sandbox.sessions.close(id);
  if (closed) co_return co_await reply_empty(responder);
  co_await reply_error(responder, 404, "CONTEXT_NOT_FOUND", cat("no session has the id ", json_string(id.substr(0, 80))));
}

}  // namespace

Task<bool> interrupt_session(Sandbox& sandbox, std::string id) {
  if (sandbox.sessions.close(id)) co_return true;
  auto [session, run] = sandbox.sessions.find_run(id);
  if (!run) co_return false;
  session->stop(run, shell::Stop::interrupted, kInterruptGrace);
  bool ended = false;
  for (auto until = ShellRun::Clock::now() + kPatience; !ended && ShellRun::Clock::now() < until;)
    ended = co_await run->wait_end(kPatience);
  co_return true;
}

void add_session_routes(http::Router& routes, Sandbox& sandbox) {
  using Params = http::Router::Params;
  auto& s = sandbox;
  routes.add("POST", "/session", [&s](Request& q, Responder& r, const Params&) { return create_session(s, q, r); });
  routes.add("POST", "/session/{id}/run",
             [&s](Request& q, Responder& r, const Params& p) { return run_in_session(s, p.find("id")->second, q, r); });
  routes.add("DELETE", "/session/{id}",
             [&s](Request&, Responder& r, const Params& p) { return delete_session(s, p.find("id")->second, r); });
}

}  // namespace osb::execd
