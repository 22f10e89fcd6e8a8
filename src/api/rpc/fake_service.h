// For tests only: a session service made of memory, with commands that do what their first word says.
#pragma once
#include <map>
#include <string>

#include "base/text.h"
#include "session/service.h"

namespace osb::api::rpc {

class FakeTerminal final : public session::Terminal {
 public:
  explicit FakeTerminal(Executor executor) : bell_(executor, Timer::time_point::max()) {}
  Task<Result<>> write(std::string bytes) override { co_return say(std::move(bytes)); }
  Task<Result<>> resize(std::uint32_t columns, std::uint32_t rows) override { co_return say(cat("[", columns, "x", rows, "]")); }
  Task<Result<>> signal(std::string name) override { co_return say(cat("[", name, "]")); }
  Task<Result<std::variant<std::string, session::Exit>>> read() override {
    while (said_.empty() && !closed_) co_await bell_.async_wait(nothrow);
    if (said_.empty()) co_return Error(Errc::unavailable, "closed");
    auto bytes = std::exchange(said_, {});
    if (bytes.find("exit") != std::string::npos) co_return std::variant<std::string, session::Exit>(session::Exit{});
    co_return std::variant<std::string, session::Exit>(std::move(bytes));
  }
  const std::string& id() const override { return id_; }
  void close() noexcept override {
    closed_ = true;
    bell_.cancel();
  }

 private:
  Result<> say(std::string bytes) {
    said_ += bytes;
    bell_.cancel();
    return Ok{};
  }
  Timer bell_;
  std::string said_;
  std::string id_ = "t1";
  bool closed_ = false;
};

class FakeService final : public session::Service {
 public:
  explicit FakeService(Executor executor) : executor_(executor) {}

  Task<Result<session::Session>> create(session::CreateRequest request, std::string key, Caller caller) override {
    last_create = std::move(request);
    last_key = std::move(key);
    if (last_create.image == "full")
      co_return Error(Errc::exhausted, "There are too many sessions.").with_code("SESSION::LIMIT_REACHED").with_hint("End one.");
    while (last_create.image == "slow" && !go) co_await sleep_for(std::chrono::milliseconds(1));
    auto made = session_of(caller);
    ++created;
    sessions.emplace(made.sandbox.id.text(), made);
    co_return made;
  }
  Task<Result<session::Session>> get(SandboxId id, Caller) override {
    auto found = sessions.find(id.text());
    if (found == sessions.end()) co_return missing();
    auto session = found->second;
    session.usage = session::Session::Usage{0.5, 1u << 20, 2u << 20, 4096, 3};
    co_return session;
  }
  Result<session::SessionPage> list(std::size_t, std::size_t, const Caller&) const override {
    session::SessionPage page;
    for (const auto& [id, session] : sessions) page.sessions.push_back(session);
    page.total = sessions.size();
    return page;
  }
  Task<Result<>> destroy(SandboxId id, Caller) override {
    if (sessions.erase(id.text()) == 0) co_return missing();
    co_return Ok{};
  }
  Task<Result<>> exec(SandboxId id, session::ExecRequest request, Caller, session::EventSink& sink) override {
    if (!sessions.contains(id.text())) co_return missing();
    co_return co_await play(id.text(), std::move(request), sink);
  }
  Task<Result<>> resume(SandboxId, std::string, std::uint64_t after, Caller, session::EventSink& sink) override {
    session::ExecEvent lost{0, session::Lost{after}};
    auto taken = co_await sink.take(std::move(lost));
    if (!taken) co_return taken;
    session::ExecEvent end{9, session::Exit{}};
    co_return co_await sink.take(std::move(end));
  }
  Task<Result<>> interrupt(SandboxId, std::string, Caller) override { co_return Ok{}; }
  Task<Result<>> run(session::CreateRequest request, session::ExecRequest command, std::string key, Caller,
                     session::EventSink& sink) override {
    last_create = std::move(request);
    last_key = std::move(key);
    co_return co_await play("once", std::move(command), sink);
  }
  Task<Result<std::unique_ptr<session::Terminal>>> open_terminal(SandboxId, session::TerminalRequest, Caller) override {
    std::unique_ptr<session::Terminal> terminal = std::make_unique<FakeTerminal>(executor_);
    co_return std::move(terminal);
  }
  Task<Result<session::FileInfo>> write_file(SandboxId, std::string path, std::uint32_t mode, http::BodyReader& content, Caller) override {
    char block[1000];
    auto& file = files[path];
    for (;;) {
      auto got = co_await content.read_some(block);
      if (!got) co_return std::move(got).error();
      if (*got == 0) break;
      file.append(block, *got);
    }
    co_return session::FileInfo{path, "file", file.size(), mode, WallTime{1'700'000'000'000'000}};
  }
  Task<Result<>> read_file(SandboxId, std::string path, Caller, TakeBytes take) override {
    const auto& file = files[path];
    for (std::size_t at = 0; at < file.size(); at += 1000) {
      auto taken = co_await take(std::string_view(file).substr(at, 1000));
      if (!taken) co_return taken;
    }
    co_return Ok{};
  }
  Task<Result<>> remove_file(SandboxId, std::string path, Caller) override {
    files.erase(path);
    co_return Ok{};
  }
  Task<Result<std::vector<session::FileInfo>>> list_directory(SandboxId, std::string, Caller) override {
    std::vector<session::FileInfo> entries;
    for (const auto& [path, bytes] : files) entries.push_back({path, "file", bytes.size(), 0644, WallTime{1}});
    co_return entries;
  }
  Task<Result<>> make_directory(SandboxId, std::string, Caller) override { co_return Ok{}; }
  std::vector<session::Approval> approvals(const Caller&) const override {
    session::Approval one;
    one.id = "a1";
    one.command = "rm -rf /";
    one.asked_at = WallTime{1'700'000'000'123'456};
    return {one};
  }
  Task<Result<session::Approval>> answer_approval(std::string id, bool allow, std::string comment, Caller) override {
    session::Approval one;
    one.id = std::move(id);
    one.state = allow ? "allowed" : "denied";
    one.comment = std::move(comment);
    co_return one;
  }

  session::CreateRequest last_create;
  std::string last_key;
  std::map<std::string, session::Session> sessions;
  std::map<std::string, std::string> files;
  bool go = false;  // creates of the image "slow" wait for it
  int created = 0;
  int waiting = 0;    // commands that wait right now
  int withdrawn = 0;  // those that were cancelled

 private:
  static Error missing() { return Error(Errc::not_found, "There is no such session.").with_code("SESSION::NOT_FOUND"); }

  static session::Session session_of(const Caller& caller) {
    session::Session session{
        .sandbox = {.id = SandboxId::random(), .owner = caller.name, .spec = {}, .status = {}, .created_at = {}, .expires_at = {}},
        .ephemeral = true,
        .runtime = "native",
        .usage = {}};
    session.sandbox.status.state = State::running;
    session.sandbox.spec.image = "host";
    session.sandbox.created_at = WallTime{1'700'000'000'123'456};
    return session;
  }

  Task<Result<>> wait_for_ever() {
    struct Counted {
      FakeService& service;
      bool ended = false;
      ~Counted() {
        --service.waiting;
        ++service.withdrawn;
      }
    } counted{*this};
    ++waiting;
    Timer forever(executor_, Timer::time_point::max());
    co_await forever.async_wait(nothrow);
    co_return Error(Errc::unavailable, "woken");
  }

  Task<Result<>> emit(session::EventSink& sink, std::uint64_t seq, decltype(session::ExecEvent::what) what) {
    session::ExecEvent event{seq, std::move(what)};
    co_return co_await sink.take(std::move(event));
  }

  // "sleep" waits, "break" fails with a secret, "many" has a lot to say, anything else is echoed; input goes to stderr.
  Task<Result<>> play(std::string session_id, session::ExecRequest request, session::EventSink& sink) {
    auto word = request.argv.empty() ? request.command + request.code : request.argv.front();
    if (word == "break") co_return Error(Errc::internal, "the secret path /var/lib/secret is gone");
    session::Started started{session_id, "e1"};
    auto taken = co_await emit(sink, 1, std::move(started));
    if (taken && word == "sleep") co_return co_await wait_for_ever();
    session::Output block{false, std::string(16384, 'x')};
    for (int i = 0; taken && word == "many" && i < 200; ++i) taken = co_await emit(sink, 2, block);
    session::Output echo{false, word + "\n"};
    if (taken) taken = co_await emit(sink, 3, std::move(echo));
    session::Output input{true, request.input.value_or("")};
    if (taken && request.input) taken = co_await emit(sink, 4, std::move(input));
    session::Exit end;
    end.exit_code = word == "seven" ? 7 : 0;
    end.duration_ms = 1.5;
    if (taken) taken = co_await emit(sink, 5, std::move(end));
    co_return taken;
  }

  Executor executor_;
};

}  // namespace osb::api::rpc
