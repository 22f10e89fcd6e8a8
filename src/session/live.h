// The session service over lifecycle and proxy. See service.h for what it promises.
//
// Everything runs on the I/O thread; after every co_await a session is looked up again.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>

#include "async/task_group.h"
#include "lifecycle/service.h"
#include "proxy/proxy.h"
#include "session/execd_events.h"
#include "session/idle.h"
#include "session/plan.h"
#include "session/service.h"

namespace osb::session {

struct Options {
  Rules rules;
  std::int64_t idle_seconds = 600;  // an ephemeral session that nobody uses ends after this
};

class LiveService final : public Service {
 public:
  LiveService(asio::io_context& io, lifecycle::Service& lifecycle, proxy::Proxy& proxy, Options options);

  // Ends what runs of a daemon that died have left, and watches over the others.
  Task<void> start();
  Task<void> stop();
  void set_options(Options options);
  void on_ended(const SandboxId& id);  // wired by the daemon

  Task<Result<Session>> create(CreateRequest request, std::string idempotency_key, Caller caller) override;
  Task<Result<Session>> get(SandboxId id, Caller caller) override;
  Result<SessionPage> list(std::size_t page, std::size_t page_size, const Caller& caller) const override;
  Task<Result<>> destroy(SandboxId id, Caller caller) override;
  Task<Result<>> exec(SandboxId id, ExecRequest request, Caller caller, EventSink& sink) override;
  Task<Result<>> resume(SandboxId id, std::string exec_id, std::uint64_t after, Caller caller, EventSink& sink) override;
  Task<Result<>> interrupt(SandboxId id, std::string exec_id, Caller caller) override;
  Task<Result<>> run(CreateRequest session, ExecRequest request, std::string idempotency_key, Caller caller, EventSink& sink) override;
  Task<Result<std::unique_ptr<Terminal>>> open_terminal(SandboxId id, TerminalRequest request, Caller caller) override;
  Task<Result<FileInfo>> write_file(SandboxId id, std::string path, std::uint32_t mode, http::BodyReader& content, Caller caller) override;
  Task<Result<>> read_file(SandboxId id, std::string path, Caller caller, TakeBytes take) override;
  Task<Result<>> remove_file(SandboxId id, std::string path, Caller caller) override;
  Task<Result<std::vector<FileInfo>>> list_directory(SandboxId id, std::string path, Caller caller) override;
  Task<Result<>> make_directory(SandboxId id, std::string path, Caller caller) override;
  std::vector<Approval> approvals(const Caller& caller) const override;
  Task<Result<Approval>> answer_approval(std::string id, bool allow, std::string comment, Caller caller) override;

  // While it lives its session is in use and does not end for idleness.
  class Use {
   public:
    Use(LiveService& service, const SandboxId& id);
    Use(Use&& other) noexcept : service_(std::exchange(other.service_, nullptr)), id_(std::move(other.id_)) {}
    Use& operator=(Use&&) = delete;
    ~Use();

   private:
    LiveService* service_;
    std::string id_;
  };

 private:
  struct Delivery;  // one event stream on its way to a sink (exec.cc)
  struct Making;    // a create whose asker may leave (run.cc)
  struct RunEnd;
  struct CodeWatch;
  struct Holding;  // a command that a person may be asked about (hold.cc)

  // live.cc
  Result<Sandbox> owned(const SandboxId& id, const Caller& caller) const;
  Result<Sandbox> running(const SandboxId& id, const Caller& caller) const;
  Session describe(Sandbox sandbox) const;
  Task<Result<lifecycle::Created>> make(CreateRequest request, std::string_view mark, std::string key, std::string print, Caller caller);
  Task<Result<Sandbox>> await_image(Sandbox sandbox, Caller caller);
  Task<void> watch_idle();
  Task<void> end_idle(SandboxId id);
  Task<void> end_leftover(SandboxId id);

  // exec.cc
  Task<Result<std::unique_ptr<proxy::Exchange>>> ask(SandboxId id, http::ClientRequest request, Caller caller, proxy::Asking asking = {});
  Task<Result<std::unique_ptr<proxy::Exchange>>> ask_held(SandboxId id, http::ClientRequest request, Caller caller, EventSink& sink);
  Task<void> ask_and_ring(std::shared_ptr<Holding> holding, SandboxId id, http::ClientRequest request, Caller caller);
  Task<void> tell_held(std::shared_ptr<Holding> holding, EventSink& sink);
  Task<Result<>> deliver(std::unique_ptr<Delivery> delivery, EventSink& sink);
  Task<void> drain(std::unique_ptr<Delivery> delivery);
  Task<Result<std::optional<ExecEvent>>> next_event(Delivery& delivery);
  Task<Result<Exit>> broken_off(SandboxId id, Error why);
  Task<void> limit_code(std::shared_ptr<CodeWatch> watch);
  Task<void> stop_code(SandboxId id, std::string context, bool hard, Caller caller);

  // files.cc
  Task<Result<FileInfo>> file_info(SandboxId id, std::string path, Caller caller);

  // run.cc
  Task<void> make_for_run(std::shared_ptr<Making> making, CreateRequest request, std::string key, std::string print, Caller caller);
  Task<void> end_run(SandboxId id, Caller caller);

  lifecycle::Service& lifecycle_;
  proxy::Proxy& proxy_;
  Options options_;
  IdleQueue idle_;
  Timer idle_timer_;
  Timer ended_;                        // cancelled, which wakes its waiters, whenever a sandbox ends
  std::set<std::string> interrupted_;  // code runs that were told to stop, while they go on
  bool stopping_ = false;
  TaskGroup tasks_;
  TaskGroup endings_;  // makes and ends of runs: finished at a stop, where tasks_ is cancelled
};

http::ClientRequest to_execd(std::string method, std::string target);
// What execd answered instead of doing it. `not_found`: the code for its 404.
Task<Error> refusal_of(proxy::Exchange& exchange, std::string_view not_found);

}  // namespace osb::session
