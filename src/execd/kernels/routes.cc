#include "execd/kernels/routes.h"

#include "base/clock.h"
#include "base/text.h"
#include "execd/command_routes.h"
#include "execd/events.h"
#include "execd/json.h"
#include "execd/replies.h"
#include "execd/run_request.h"
#include "execd/runs/follow.h"
#include "execd/shell/session.h"

namespace osb::execd {
namespace {

using http::Request;
using http::Responder;
using Params = http::Router::Params;

constexpr auto kShellGrace = std::chrono::seconds(3);
constexpr auto kShellPatience = std::chrono::seconds(10);

// The events of a code run, numbered and kept.
class KeptEvents final : public CodeEvents {
 public:
  explicit KeptEvents(runs::Run& run) : run_(run) {}
  void add(std::string members) override { run_.keep(whole(members)); }
  void finish(std::string members) override { run_.finish(whole(members)); }
  Task<void> room() override { return run_.room(); }

 private:
  std::string whole(std::string_view members) {
    return cat("{", members, ",\"seq\":", run_.next_seq(), ",\"timestamp\":", wall_now_millis(), "}\n\n");
  }
  runs::Run& run_;
};

struct CodeRequest {
  std::string code;
  std::string context_id;
  std::string language;
  bool raw = false;  // of a shell's output: as it was written, not line by line
};

Result<CodeRequest> parse_code_request(std::string_view body) {
  TRY(auto object, parse_object(body));
  CodeRequest request;
  TRY(request.code, text_member(object, "code"));
  if (request.code.empty()) return Error(Errc::invalid_argument, "\"code\" is required").at("code");
  TRY(request.raw, flag_member(object, "raw"));
  auto* context = object.if_contains("context");
  if (!context || context->is_null()) return request;
  if (!context->is_object()) return Error(Errc::malformed, "\"context\" must be an object").at("context");
  TRY(request.context_id, text_member(context->get_object(), "id"));
  TRY(std::string language, text_member(context->get_object(), "language"));
  request.language = to_lower(language);
  return request;
}

std::string context_json(const Context& context) {
  std::string out = cat("{\"id\":\"", context.id, "\",\"language\":", json_string(context.language));
  if (!context.cwd.empty()) out += cat(",\"cwd\":", json_string(context.cwd));
  return out += "}";
}

Task<void> reply_json(Responder& responder, std::string body) {
  auto response = http::Response::json(200, std::move(body));
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
}

// What cannot be done is the runtime's fault in this protocol, unless the request names a directory that is not there.
Task<void> reply_failure(Responder& responder, Error error) {
  if (error.field() == "cwd") co_return co_await reply_bad_request(responder, std::move(error));
  int status = error.kind() == Errc::exhausted ? 429 : 500;
  co_await reply_error(responder, status, "RUNTIME_ERROR", error.what());
}

Task<void> reply_no_context(Responder& responder, std::string id) {
  co_await reply_error(responder, 404, "CONTEXT_NOT_FOUND", cat("no context has the id ", json_string(id.substr(0, 80))));
}

// ---- runs ----------------------------------------------------------------------------------------------------------

// From its turn to its terminal event, whoever reads.
Task<void> produce(Sandbox& sandbox, std::shared_ptr<Context> context, std::uint64_t ticket, std::string code,
                   std::shared_ptr<runs::Run> run) {
  KeptEvents events(*run);
  co_await context->wait_turn(ticket);
  auto ready = context->removed ? Result<>(Error(Errc::not_found, "the context was deleted")) : Result<>(Ok{});
  if (ready) ready = co_await sandbox.kernels.ensure_kernel(context);
  if (ready) {
    auto kernel = context->kernel;
    co_await kernel->execute(std::move(code), events);
  } else {
    events.finish(error_members("KernelError", ready.error().what(), {}));
  }
  context->leave();
}

Task<void> run_in(Sandbox& sandbox, std::shared_ptr<Context> context, std::string code, bool raw, runs::Key key, Responder& responder) {
  if (context->full())
    co_return co_await reply_error(responder, 409, "RUNTIME_ERROR",
                                   "session is busy: one run is under way and 16 more wait in this context");
  if (context->shell && code.find('\0') != std::string::npos)
    co_return co_await reply_error(responder, 400, "INVALID_REQUEST_BODY", "\"code\" for bash contains a zero byte");
  auto run = sandbox.runs.add(std::move(key));
  if (context->shell) {
    context->shell->submit({std::move(code), {}, {}, raw}, run);
    co_return void(co_await runs::follow(std::move(run), responder));
  }
  std::string first;
  events::append_init(first, run->next_seq(), context->id, run->id());
  run->keep(first);
  auto ticket = context->draw();
  sandbox.tasks.spawn("code", produce(sandbox, std::move(context), ticket, std::move(code), run));
  co_await runs::follow(std::move(run), responder);
}

Task<void> run_code(Sandbox& sandbox, Request& request, Responder& responder) {
  auto body = co_await request.body->read_all(kMaxBody);
  if (!body) co_return co_await reply_bad_request(responder, std::move(body).error());
  runs::Key key;
  bool answered = co_await runs::answer_repeated(sandbox, request, responder, *body, key);
  if (answered) co_return;
  auto asked = parse_code_request(*body);
  if (!asked) co_return co_await reply_bad_request(responder, std::move(asked).error());
  if (asked->context_id.empty() && (asked->language.empty() || asked->language == "command")) {
    auto command = parse_command_request(cat("{\"command\":", json_string(asked->code), "}"));
    if (!command) co_return co_await reply_bad_request(responder, std::move(command).error());
    co_return co_await start_command(sandbox, *std::move(command), std::move(key), responder);
  }
  auto context = asked->context_id.empty() ? sandbox.kernels.default_for(asked->language) : Result(sandbox.kernels.find(asked->context_id));
  if (!context) co_return co_await reply_failure(responder, std::move(context).error());
  if (!*context) co_return co_await reply_no_context(responder, std::move(asked->context_id));
  co_await run_in(sandbox, *std::move(context), std::move(asked->code), asked->raw, std::move(key), responder);
}

// ---- contexts ------------------------------------------------------------------------------------------------------

Task<void> create_context(Sandbox& sandbox, Request& request, Responder& responder) {
  auto body = co_await request.body->read_all(kMaxBody);
  if (!body) co_return co_await reply_bad_request(responder, std::move(body).error());
  auto object = parse_object(*body);
  auto language = object ? text_member(*object, "language") : Result<std::string>(object.error());
  auto cwd = object ? text_member(*object, "cwd") : Result<std::string>(object.error());
  if (!language) co_return co_await reply_bad_request(responder, std::move(language).error());
  if (!cwd) co_return co_await reply_bad_request(responder, std::move(cwd).error());
  if (language->empty()) co_return co_await reply_error(responder, 400, "INVALID_REQUEST_BODY", "\"language\" is required");
  auto context = co_await sandbox.kernels.create(to_lower(*language), *std::move(cwd));
  if (!context) co_return co_await reply_failure(responder, std::move(context).error());
  co_await reply_json(responder, context_json(**context));
}

Task<void> list_contexts(Sandbox& sandbox, Request& request, Responder& responder) {
  std::string language = to_lower(query_value(request, "language"));
  if (language == "command" || language == "background-command" || language == "sql")
    co_return co_await reply_error(responder, 500, "RUNTIME_ERROR", cat("there are no contexts of ", json_string(language)));
  std::string out = "[";
  for (const auto& context : sandbox.kernels.list(language)) out += cat(out.size() > 1 ? "," : "", context_json(*context));
  co_await reply_json(responder, out + "]");
}

Task<void> delete_contexts(Sandbox& sandbox, Request& request, Responder& responder) {
  std::string language = to_lower(query_value(request, "language"));
  if (language.empty()) co_return co_await reply_error(responder, 400, "MISSING_QUERY", "the query parameter \"language\" is required");
  for (const auto& context : sandbox.kernels.list(language)) sandbox.kernels.remove(*context);
  co_await reply_empty(responder);
}

Task<void> get_context(Sandbox& sandbox, std::string id, Responder& responder) {
  auto context = sandbox.kernels.find(id);
  if (!context) co_return co_await reply_no_context(responder, std::move(id));
  co_await reply_json(responder, context_json(*context));
}

Task<void> delete_context(Sandbox& sandbox, std::string id, Responder& responder) {
  auto context = sandbox.kernels.find(id);
  if (!context) co_return co_await reply_no_context(responder, std::move(id));
  sandbox.kernels.remove(*context);
  co_await reply_empty(responder);
}

}  // namespace

Task<void> interrupt_context(std::shared_ptr<Context> context, Responder& responder) {
  auto kernel = context->kernel;
  bool done = false;
  if (kernel) done = co_await kernel->interrupt();
  if (auto run = context->shell ? context->shell->current() : nullptr) {
    context->shell->stop(run, shell::Stop::interrupted, kShellGrace);
    done = co_await run->wait_end(kShellPatience);
  }
  if (!done) co_return co_await reply_error(responder, 500, "RUNTIME_ERROR", "no code runs in this context");
  co_await reply_empty(responder);
}

void add_code_routes(http::Router& routes, Sandbox& sandbox) {
  auto& s = sandbox;
  auto id = [](const Params& params) { return params.find("id")->second; };
  routes.add("POST", "/code", [&s](Request& q, Responder& r, const Params&) { return run_code(s, q, r); });
  routes.add("POST", "/code/context", [&s](Request& q, Responder& r, const Params&) { return create_context(s, q, r); });
  routes.add("GET", "/code/contexts", [&s](Request& q, Responder& r, const Params&) { return list_contexts(s, q, r); });
  routes.add("DELETE", "/code/contexts", [&s](Request& q, Responder& r, const Params&) { return delete_contexts(s, q, r); });
  routes.add("GET", "/code/contexts/{id}", [&s, id](Request&, Responder& r, const Params& p) { return get_context(s, id(p), r); });
  routes.add("DELETE", "/code/contexts/{id}", [&s, id](Request&, Responder& r, const Params& p) { return delete_context(s, id(p), r); });
}

}  // namespace osb::execd
