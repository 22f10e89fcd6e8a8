#include "execd/collector.h"

#include <boost/asio/post.hpp>

namespace osb::execd {
namespace {

constexpr int kReadsInARow = 8;
constexpr std::size_t kMaxDrains = 256;

// Feeds both pipes to `use` until they are closed.
template <class Use>
Task<void> read_to_the_end(std::shared_ptr<Process> process, Use use) {
  int reads = 0;
  while (process->out().is_open() || process->err().is_open()) {
    bool any = false;
    for (OutputPipe* pipe : {&process->out(), &process->err()}) {
      std::size_t n = pipe->read(scratch());
      use(std::string_view(scratch().data(), n));
      any = any || n > 0;
    }
    if (any && ++reads % kReadsInARow == 0) co_await give_way();
    if (any || (!process->out().is_open() && !process->err().is_open())) continue;
    co_await process->activity(Process::Clock::time_point::max());
  }
}

Task<void> drain(std::shared_ptr<Process> process) {
  auto drop = [](std::string_view) {};
  co_await read_to_the_end(std::move(process), drop);
}

}  // namespace

Task<void> give_way() {
  auto executor = co_await asio::this_coro::executor;
  asio::use_awaitable_t<Executor> token;
  co_await asio::post(executor, token);
}

Task<void> collect_into(std::shared_ptr<Process> process, Ring& ring) {
  auto keep = [&ring](std::string_view bytes) { ring.append(bytes); };
  co_await read_to_the_end(std::move(process), keep);
}

Task<void> collect(std::shared_ptr<Command> command) {
  auto process = command->process;
  auto keep = [command](std::string_view bytes) { command->keep(bytes); };
  co_await read_to_the_end(std::move(process), keep);
}

void drain_in_background(Sandbox& sandbox, std::shared_ptr<Process> process) {
  process->out().expect_bytes();
  process->err().expect_bytes();
  if (sandbox.tasks.size() < kMaxDrains + Commands::kMaxRunning) return sandbox.tasks.spawn("drain", drain(std::move(process)));
  process->out().close();
  process->err().close();
}

}  // namespace osb::execd
