#include <array>
#include <boost/json/object.hpp>

#include "base/text.h"
#include "model/json.h"
#include "session/frames.h"
#include "session/live.h"

namespace osb::session {
namespace {

constexpr std::size_t kBlock = 32 * 1024;

struct SignalName {
  std::string_view name;
  int number;
};
// Those that make sense to type at a program.
constexpr std::array kSignals = std::to_array<SignalName>({{"SIGHUP", 1},
                                                           {"SIGINT", 2},
                                                           {"SIGQUIT", 3},
                                                           {"SIGKILL", 9},
                                                           {"SIGUSR1", 10},
                                                           {"SIGUSR2", 12},
                                                           {"SIGTERM", 15},
                                                           {"SIGCONT", 18},
                                                           {"SIGTSTP", 20},
                                                           {"SIGWINCH", 28}});

Exit exit_of(const std::string& payload) {
  Exit exit;
  auto object = parse_json_object(payload, {.bytes = kMaxFramePayload, .depth = 4});
  if (!object) return exit;
  if (const auto* code = object->if_contains("exit_code"); code && code->is_int64())
    exit.exit_code = static_cast<int>(std::clamp<std::int64_t>(code->get_int64(), 0, 255));
  std::string_view cause;
  if (const auto* text = object->if_contains("cause"); text && text->is_string()) cause = text->get_string();
  for (auto known : {Cause::signalled, Cause::timed_out, Cause::out_of_memory})
    if (cause == name_of(known)) exit.cause = known;
  if (const auto* text = object->if_contains("advice"); text && text->is_string()) exit.advice = text->get_string();
  return exit;
}

class ExecTerminal final : public Terminal {
 public:
  ExecTerminal(LiveService& service, const SandboxId& id, std::unique_ptr<proxy::Exchange> exchange)
      : use_(service, id), exchange_(std::move(exchange)), id_(random_hex(16)) {}
  ~ExecTerminal() override { exchange_->close(); }

  Task<Result<>> write(std::string bytes) override { return send(input_frames(bytes)); }

  Task<Result<>> resize(std::uint32_t columns, std::uint32_t rows) override {
    TerminalRequest wanted{.columns = columns, .rows = rows};
    if (auto fine = check(wanted); !fine) co_return std::move(fine).error();
    std::string size;
    for (auto side : {columns, rows}) size += {static_cast<char>(side >> 8), static_cast<char>(side & 0xFF)};
    co_return co_await send(make_frame(FrameType::resize, size));
  }

  Task<Result<>> signal(std::string name) override {
    const auto* found = std::find_if(kSignals.begin(), kSignals.end(), [&](const SignalName& row) { return row.name == name; });
    if (found == kSignals.end()) co_return invalid("signal", "must be a name such as SIGINT or SIGTERM");
    co_return co_await send(make_frame(FrameType::signal, std::string(1, static_cast<char>(found->number))));
  }

  Task<Result<std::variant<std::string, Exit>>> read() override {
    using Read = std::variant<std::string, Exit>;
    for (;;) {
      CO_TRY(auto frame, frames_.next());
      if (frame && frame->type == FrameType::end) co_return Read(exit_of(frame->payload));
      if (frame && !frame->payload.empty()) co_return Read(std::move(frame->payload));
      if (frame) continue;
      auto got = co_await exchange_->read_some(block_);
      if (!got || *got == 0)
        co_return Read(Exit{.exit_code = 137, .cause = Cause::session_ended, .advice = "The session ended, or the terminal was closed."});
      frames_.feed({block_.data(), *got});
    }
  }

  const std::string& id() const override { return id_; }
  void close() noexcept override { exchange_->close(); }

 private:
  Task<Result<>> send(std::string frames) { co_return co_await exchange_->write_all(frames); }

  LiveService::Use use_;
  std::unique_ptr<proxy::Exchange> exchange_;
  FrameReader frames_;
  std::string block_ = std::string(kBlock, '\0');
  std::string id_;
};

std::string body_of(const TerminalRequest& request) {
  std::string body = "{\"argv\":";
  std::vector<std::string> shell{"/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash -i || exec sh -i"};
  append_json_list(body, request.argv.empty() ? shell : request.argv);
  body += cat(",\"tty\":{\"cols\":", request.columns, ",\"rows\":", request.rows, "}");
  if (!request.cwd.empty()) body += cat(",\"cwd\":", json_string(request.cwd));
  if (!request.env.empty()) {
    body += ",\"env\":";
    append_json_map(body, request.env);
  }
  return body + "}";
}

}  // namespace

Task<Result<std::unique_ptr<Terminal>>> LiveService::open_terminal(SandboxId id, TerminalRequest request, Caller caller) {
  CO_TRY([[maybe_unused]] auto sandbox, running(id, caller));
  if (auto fine = check(request); !fine) co_return std::move(fine).error();
  auto outgoing = to_execd("POST", "/osb/v1/exec");
  outgoing.headers.add("Connection", "Upgrade");
  outgoing.headers.add("Upgrade", "osb-exec/1");
  outgoing.body = body_of(request);
  CO_TRY(auto exchange, co_await ask(id, std::move(outgoing), std::move(caller)));
  if (exchange->status() != 101) co_return co_await refusal_of(*exchange, "EXEC::NOT_FOUND");
  co_return std::make_unique<ExecTerminal>(*this, id, std::move(exchange));
}

}  // namespace osb::session
