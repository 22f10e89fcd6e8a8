#include "api/rpc/terminal.h"

#include "api/rpc/convert.h"
#include "async/task_group.h"

namespace osb::api::rpc {
namespace {

Error malformed(std::string what) { return Error(Errc::malformed, std::move(what)).with_code("GENERAL::MALFORMED"); }

Task<Result<>> apply(session::Terminal& terminal, TerminalInput input) {
  if (input.data) co_return co_await terminal.write(*std::move(input.data));
  if (input.resize) co_return co_await terminal.resize(input.resize->columns, input.resize->rows);
  if (input.signal) co_return co_await terminal.signal(*std::move(input.signal));
  co_return malformed("A terminal is opened once; after that it takes data, resize and signal.");
}

struct Side {
  Call& call;
  session::Terminal& terminal;
  std::optional<Error> failure;
};

Task<Result<bool>> pass_one(Side& side) {
  CO_TRY(auto bytes, co_await side.call.in.next());
  if (!bytes) co_return false;
  CO_TRY(auto input, decode<TerminalInput>(side.call.form, *bytes));
  CO_TRY([[maybe_unused]] auto applied, co_await apply(side.terminal, std::move(input)));
  co_return true;
}

// What goes wrong with the input hangs up, which wakes the side that reads.
Task<void> pass_input(Side& side) {
  for (;;) {
    auto passed = co_await pass_one(side);
    if (passed && !*passed) co_return;
    if (passed) continue;
    side.failure = std::move(passed).error();
    side.terminal.close();
    co_return;
  }
}

Task<Result<>> pass_output(Side& side) {
  for (;;) {
    auto got = co_await side.terminal.read();
    if (!got && side.failure) co_return *std::move(side.failure);
    if (!got) co_return std::move(got).error();
    TerminalOutput output;
    auto* end = std::get_if<session::Exit>(&*got);
    if (end) {
      output.exit = from(std::move(*end));
    } else {
      output.data = std::move(std::get<std::string>(*got));
    }
    auto bytes = encode(side.call.form, output);
    auto sent = co_await side.call.out.send(std::move(bytes));
    if (!sent || output.exit) co_return sent;
  }
}

Task<Result<>> say_opened(Call& call, std::string session_id, std::string terminal_id) {
  TerminalOutput output;
  output.opened = Started{std::move(session_id), std::move(terminal_id)};
  auto bytes = encode(call.form, output);
  co_return co_await call.out.send(std::move(bytes));
}

}  // namespace

Task<Result<>> terminal(Call& call) {
  CO_TRY(auto first, co_await call.in.next());
  if (!first) co_return malformed("The call has no message.");
  CO_TRY(auto message, decode<TerminalInput>(call.form, *first));
  if (!message.open) co_return malformed("The first message must be open: it says which session.");
  auto session_id = message.open->session_id;
  CO_TRY(auto id, to_session_id(session_id));
  auto wanted = to_terminal(*std::move(message.open));
  CO_TRY(auto opened, co_await call.service.open_terminal(id, std::move(wanted), call.caller));
  CO_TRY([[maybe_unused]] auto said, co_await say_opened(call, std::move(session_id), opened->id()));
  // From here on a cancelled call still waits for the side that reads input before it lets go of the terminal.
  co_await asio::this_coro::throw_if_cancelled(false);
  Side side{call, *opened, {}};
  auto executor = co_await asio::this_coro::executor;
  TaskGroup input(executor);
  input.spawn("terminal input", pass_input(side));
  auto done = co_await pass_output(side);
  opened->close();
  co_await input.stop();
  co_return done;
}

}  // namespace osb::api::rpc
