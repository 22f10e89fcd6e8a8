#include "execd/collector.h"

#include <boost/asio/post.hpp>

namespace osb::execd {
namespace {

constexpr int kReadsInARow = 8;
constexpr std::size_t kMaxDrains = 256;

// Feeds both pipes to `use` until they are closed.
template <class Use>
Task<void> read_to_the_end(std::shared_ptr<OutputSource> source, Use use) {
  int reads = 0;
  while (source->has_open_pipe()) {
    bool any = false;
    for (OutputPipe* pipe : {&source->out(), &source->err()}) {
      std::size_t n = pipe->read(scratch());
      use(std::string_view(scratch().data(), n));
      any = any || n > 0;
    }
    if (any && ++reads % kReadsInARow == 0) co_await give_way();
    if (any || !source->has_open_pipe()) continue;
    co_await source->activity(OutputSource::Clock::time_point::max());
  }
}

Task<void> drain(std::shared_ptr<OutputSource> source) {
  auto drop = [](std::string_view) {};
  co_await read_to_the_end(std::move(source), drop);
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

void drain_in_background(Sandbox& sandbox, std::shared_ptr<OutputSource> source) {
  source->expect_output();
  if (sandbox.tasks.size() < kMaxDrains + Commands::kMaxRunning) return sandbox.tasks.spawn("drain", drain(std::move(source)));
  source->out().close();
  source->err().close();
}

}  // namespace osb::execd
