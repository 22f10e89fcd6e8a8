// The session service: what every short front door (REST on its own listener, gRPC, Connect) is made of.
//
// A session is a sandbox of the lifecycle service with a mark; its id is the sandbox's. One sandbox serves one session and is
// never used again. Everything runs on the I/O thread. Commands pass the command policy and the audit log before they run,
// exactly as they do through the proxy.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "async/task.h"
#include "base/result.h"
#include "http/http.h"
#include "lifecycle/service.h"
#include "model/caller.h"
#include "session/values.h"

namespace osb::session {

// Takes the events of a command one by one. An error (the reader is gone) ends the delivery, not the command.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual Task<Result<>> take(ExecEvent event) = 0;
  // Called every few seconds while nothing happens: a door may show its reader that it is still there.
  virtual Task<Result<>> still() { co_return Ok{}; }
};

// Keeps output up to a bound: what a single answer is made of.
class Collector final : public EventSink {
 public:
  explicit Collector(std::uint64_t most_bytes_each) : most_(most_bytes_each) {}
  Task<Result<>> take(ExecEvent event) override;

  std::string session_id, exec_id;
  std::string out, err;
  bool out_truncated = false;
  bool err_truncated = false;
  std::vector<CodeResult> results;
  std::optional<Exit> exit;

 private:
  std::uint64_t most_;
};

// A terminal in a session. Closing it (or dropping it) hangs up.
class Terminal {
 public:
  virtual ~Terminal() = default;
  virtual Task<Result<>> write(std::string bytes) = 0;
  virtual Task<Result<>> resize(std::uint32_t columns, std::uint32_t rows) = 0;
  virtual Task<Result<>> signal(std::string name) = 0;
  // The next output, or how it ended. One reader at a time; may be used while write() is under way.
  virtual Task<Result<std::variant<std::string, Exit>>> read() = 0;
  virtual const std::string& id() const = 0;
  virtual void close() noexcept = 0;
};

class Service {
 public:
  virtual ~Service() = default;

  // `idempotency_key`: "" = none.
  virtual Task<Result<Session>> create(CreateRequest request, std::string idempotency_key, Caller caller) = 0;
  virtual Task<Result<Session>> get(SandboxId id, Caller caller) = 0;  // with usage
  virtual Result<SessionPage> list(std::size_t page, std::size_t page_size, const Caller& caller) const = 0;
  virtual Task<Result<>> destroy(SandboxId id, Caller caller) = 0;

  // Returns when the command has ended and its Exit was taken. An error: it did not run, or what became of it is not known.
  virtual Task<Result<>> exec(SandboxId id, ExecRequest request, Caller caller, EventSink& sink) = 0;
  virtual Task<Result<>> resume(SandboxId id, std::string exec_id, std::uint64_t after, Caller caller, EventSink& sink) = 0;
  virtual Task<Result<>> interrupt(SandboxId id, std::string exec_id, Caller caller) = 0;
  // create + exec + destroy. The session is gone when it returns, also when it is cancelled.
  virtual Task<Result<>> run(CreateRequest session, ExecRequest request, std::string idempotency_key, Caller caller, EventSink& sink) = 0;
  virtual Task<Result<std::unique_ptr<Terminal>>> open_terminal(SandboxId id, TerminalRequest request, Caller caller) = 0;

  virtual Task<Result<FileInfo>> write_file(SandboxId id, std::string path, std::uint32_t mode, http::BodyReader& content,
                                            Caller caller) = 0;
  // `take` is called with each piece.
  using TakeBytes = std::function<Task<Result<>>(std::string_view bytes)>;
  virtual Task<Result<>> read_file(SandboxId id, std::string path, Caller caller, TakeBytes take) = 0;
  virtual Task<Result<>> remove_file(SandboxId id, std::string path, Caller caller) = 0;
  virtual Task<Result<std::vector<FileInfo>>> list_directory(SandboxId id, std::string path, Caller caller) = 0;
  virtual Task<Result<>> make_directory(SandboxId id, std::string path, Caller caller) = 0;

  virtual std::vector<Approval> approvals(const Caller& caller) const = 0;
  virtual Task<Result<Approval>> answer_approval(std::string id, bool allow, std::string comment, Caller caller) = 0;
};

}  // namespace osb::session
