#include "api/rpc/call.h"
#include "api/rpc/convert.h"
#include "api/rpc/files.h"
#include "api/rpc/terminal.h"
#include "session/plan.h"

namespace osb::api::rpc {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kDefaultPage = 100;

// ---- shapes ---------------------------------------------------------------------------------------------------------

Error malformed(std::string what) { return Error(Errc::malformed, std::move(what)).with_code("GENERAL::MALFORMED"); }

template <class Request>
Task<Result<Request>> only_message(Call& call) {
  CO_TRY(auto first, co_await call.in.next());
  if (!first) co_return malformed("The call has no message.");
  CO_TRY(auto more, co_await call.in.next());
  if (more) co_return malformed("This method takes one message.");
  co_return decode<Request>(call.form, *first);
}

template <class Request, class Answer, Task<Result<Answer>> (*Handle)(Call&, Request)>
Task<Result<>> unary(Call& call) {
  CO_TRY(auto request, co_await only_message<Request>(call));
  CO_TRY(auto answer, co_await Handle(call, std::move(request)));
  auto bytes = encode(call.form, answer);
  co_return co_await call.out.send(std::move(bytes));
}

template <class Request, Task<Result<>> (*Handle)(Call&, Request)>
Task<Result<>> streaming(Call& call) {
  CO_TRY(auto request, co_await only_message<Request>(call));
  co_return co_await Handle(call, std::move(request));
}

// ---- sessions -------------------------------------------------------------------------------------------------------

// A session whose asker left before it was told the id is nobody's, unless a key lets it ask again.
Task<Result<Session>> create_session(Call& call, CreateSessionRequest request) {
  auto key = std::move(request.idempotency_key);
  bool once = key.empty();
  auto value = to_create(std::move(request));
  CO_TRY(auto made, co_await call.service.create(std::move(value), std::move(key), call.caller));
  if (call.left && once) {
    [[maybe_unused]] auto gone = co_await call.service.destroy(made.sandbox.id, call.caller);
    co_return Error(Errc::timeout, "Nobody waited for the session any more; it is gone again.").with_code("GENERAL::DEADLINE");
  }
  co_return from(made);
}

Task<Result<Session>> get_session(Call& call, GetSessionRequest request) {
  CO_TRY(auto id, to_session_id(request.session_id));
  CO_TRY(auto found, co_await call.service.get(id, call.caller));
  co_return from(found);
}

Task<Result<ListSessionsResponse>> list_sessions(Call& call, ListSessionsRequest request) {
  auto size = request.page_size == 0 ? kDefaultPage : request.page_size;
  CO_TRY(auto page, call.service.list(request.page == 0 ? 1 : request.page, size, call.caller));
  ListSessionsResponse answer;
  for (const auto& session : page.sessions) answer.sessions.push_back(from(session));
  answer.total = page.total;
  co_return answer;
}

Task<Result<DeleteSessionResponse>> delete_session(Call& call, DeleteSessionRequest request) {
  CO_TRY(auto id, to_session_id(request.session_id));
  CO_TRY([[maybe_unused]] auto gone, co_await call.service.destroy(id, call.caller));
  co_return DeleteSessionResponse{};
}

// ---- commands -------------------------------------------------------------------------------------------------------

// Sends each event on. The service learns when the caller takes no more.
class Forward final : public session::EventSink {
 public:
  explicit Forward(Call& call) : call_(call) {}
  Task<Result<>> take(session::ExecEvent event) override {
    auto bytes = encode(call_.form, from(std::move(event)));
    co_return co_await call_.out.send(std::move(bytes));
  }

 private:
  Call& call_;
};

ExecResult result_of(session::Collector& kept) {
  ExecResult out;
  out.session_id = std::move(kept.session_id);
  out.exec_id = std::move(kept.exec_id);
  out.out = std::move(kept.out);
  out.err = std::move(kept.err);
  out.stdout_truncated = kept.out_truncated;
  out.stderr_truncated = kept.err_truncated;
  if (kept.exit) out.end = from(*std::move(kept.exit));
  for (auto& result : kept.results) out.results.push_back({std::move(result.data)});
  return out;
}

// ExecRequest and CodeRequest differ only in what they ask for.
template <class Request>
Task<Result<ExecResult>> exec(Call& call, Request request) {
  CO_TRY(auto id, to_session_id(request.session_id));
  CO_TRY(auto most, to_output_bound(request.max_output_bytes));
  auto command = to_exec(std::move(request));
  session::Collector kept(most);
  CO_TRY([[maybe_unused]] auto ended, co_await call.service.exec(id, std::move(command), call.caller, kept));
  co_return result_of(kept);
}

template <class Request>
Task<Result<>> exec_stream(Call& call, Request request) {
  CO_TRY(auto id, to_session_id(request.session_id));
  auto command = to_exec(std::move(request));
  Forward sink(call);
  co_return co_await call.service.exec(id, std::move(command), call.caller, sink);
}

Task<Result<>> resume_events(Call& call, ResumeEventsRequest request) {
  CO_TRY(auto id, to_session_id(request.session_id));
  Forward sink(call);
  co_return co_await call.service.resume(id, std::move(request.exec_id), request.after, call.caller, sink);
}

Task<Result<InterruptExecResponse>> interrupt_exec(Call& call, InterruptExecRequest request) {
  CO_TRY(auto id, to_session_id(request.session_id));
  CO_TRY([[maybe_unused]] auto told, co_await call.service.interrupt(id, std::move(request.exec_id), call.caller));
  co_return InterruptExecResponse{};
}

Result<ExecRequest> command_of(RunRequest& request) {
  auto command = std::move(request.exec).value_or(ExecRequest{});
  if (command.session_id.empty()) return command;
  return session::invalid("exec.session_id", "must be empty: Run makes its own session");
}

Task<Result<ExecResult>> run(Call& call, RunRequest request) {
  CO_TRY(auto message, command_of(request));
  CO_TRY(auto most, to_output_bound(message.max_output_bytes));
  auto command = to_exec(std::move(message));
  auto wanted = std::move(request.session).value_or(CreateSessionRequest{});
  auto key = std::move(wanted.idempotency_key);
  auto session = to_create(std::move(wanted));
  session::Collector kept(most);
  CO_TRY([[maybe_unused]] auto ended, co_await call.service.run(std::move(session), std::move(command), std::move(key), call.caller, kept));
  co_return result_of(kept);
}

Task<Result<>> run_stream(Call& call, RunRequest request) {
  CO_TRY(auto message, command_of(request));
  auto command = to_exec(std::move(message));
  auto wanted = std::move(request.session).value_or(CreateSessionRequest{});
  auto key = std::move(wanted.idempotency_key);
  auto session = to_create(std::move(wanted));
  Forward sink(call);
  co_return co_await call.service.run(std::move(session), std::move(command), std::move(key), call.caller, sink);
}

// ---- approvals ------------------------------------------------------------------------------------------------------

Task<Result<ListApprovalsResponse>> list_approvals(Call& call, ListApprovalsRequest) {
  ListApprovalsResponse answer;
  for (auto& approval : call.service.approvals(call.caller)) answer.approvals.push_back(from(std::move(approval)));
  co_return answer;
}

Task<Result<Approval>> answer_approval(Call& call, AnswerApprovalRequest request) {
  CO_TRY(auto allow, to_answer(request.answer));
  CO_TRY(auto settled, co_await call.service.answer_approval(std::move(request.id), allow, std::move(request.comment), call.caller));
  co_return from(std::move(settled));
}

// ---- the table ------------------------------------------------------------------------------------------------------

// A command takes as long as it may, and a minute for what is around it.
constexpr std::chrono::seconds kCommand{static_cast<int>(session::kMaxExecSeconds) + 60};
constexpr std::chrono::seconds kFile{3600};
constexpr std::chrono::seconds kShort{60};

constexpr Method kMethods[] = {
    {"CreateSession", false, false, 600s, unary<CreateSessionRequest, Session, create_session>, true},
    {"GetSession", false, false, kShort, unary<GetSessionRequest, Session, get_session>},
    {"ListSessions", false, false, kShort, unary<ListSessionsRequest, ListSessionsResponse, list_sessions>},
    {"DeleteSession", false, false, kShort, unary<DeleteSessionRequest, DeleteSessionResponse, delete_session>, true},
    {"Exec", false, false, kCommand, unary<ExecRequest, ExecResult, exec<ExecRequest>>},
    {"ExecStream", false, true, kCommand, streaming<ExecRequest, exec_stream<ExecRequest>>},
    {"RunCode", false, false, kCommand, unary<CodeRequest, ExecResult, exec<CodeRequest>>},
    {"RunCodeStream", false, true, kCommand, streaming<CodeRequest, exec_stream<CodeRequest>>},
    {"ResumeEvents", false, true, kCommand, streaming<ResumeEventsRequest, resume_events>},
    {"InterruptExec", false, false, kShort, unary<InterruptExecRequest, InterruptExecResponse, interrupt_exec>},
    {"Run", false, false, kCommand, unary<RunRequest, ExecResult, run>},
    {"RunStream", false, true, kCommand, streaming<RunRequest, run_stream>},
    {"Terminal", true, true, kCommand, terminal},
    {"ReadFile", false, true, kFile, streaming<ReadFileRequest, read_file>},
    {"WriteFile", true, false, kFile, write_file},
    {"ListDirectory", false, false, kShort, unary<ListDirectoryRequest, ListDirectoryResponse, list_directory>},
    {"RemoveFile", false, false, kShort, unary<RemoveFileRequest, RemoveFileResponse, remove_file>},
    {"ListApprovals", false, false, kShort, unary<ListApprovalsRequest, ListApprovalsResponse, list_approvals>},
    {"AnswerApproval", false, false, kShort, unary<AnswerApprovalRequest, Approval, answer_approval>, true},
};

}  // namespace

const Method* find_method(std::string_view name) {
  for (const Method& method : kMethods)
    if (method.name == name) return &method;
  return nullptr;
}

}  // namespace osb::api::rpc
