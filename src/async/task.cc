#include "async/task.h"

namespace osb {

Task<void> sleep_for(std::chrono::steady_clock::duration d) {
  auto executor = co_await asio::this_coro::executor;
  Timer timer(executor, d);
  co_await timer.async_wait(nothrow);
}

}  // namespace osb
